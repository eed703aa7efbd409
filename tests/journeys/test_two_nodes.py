"""The recipe examples/two_nodes.yaml with verl itself, on a real Ray of two raylets on this machine, one of which is killed in the middle."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from resources.profile import FOLDER
from tests.journeys.chain import demo, left, wait_until
from tests.journeys.test_chaos import training_of
from tests.resources.two_nodes import HEAD, OTHER, ROOT, Nodes, two_nodes
from verl_jobs import faults
from verl_jobs.job import TrainingJob, metrics
from verl_jobs.saving import whole_saves


@pytest.mark.soak
@pytest.mark.timeout(3000)
def test_a_chain_on_two_nodes_comes_to_a_decision_though_one_of_them_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, seen = tmp_path / "home", dict[str, Any]()
    with two_nodes(1, str(ROOT)) as nodes:
        for name, value in (nodes.environment | {"PYTHONPATH": str(ROOT)}).items():
            monkeypatch.setenv(name, value)

        def lose_one(command: subprocess.Popen[bytes]) -> str:
            assert wait_until(lambda: saved(home) or command.poll() is not None, 1500) and command.poll() is None
            seen["ranks"], seen["step"] = places(nodes, "WorkerDict"), saved(home)[-1]
            nodes.kill(OTHER)
            return OTHER

        run = demo(home, kill=lose_one, profile=str(small(tmp_path, nodes.dashboard)), timeout=2500)
    assert run.code == 0, run.output[-3000:]
    assert seen["ranks"] == [HEAD, OTHER]
    folder = training_of(home)
    assert folder and left(home).ledger
    assert [row["step"] for row in metrics(folder)][-1] == TrainingJob.read(folder / "job.json").training.steps
    told = [fault.what for fault in faults.read(folder)]
    assert any("hold [1] GPUs: it goes on with 1 rank on 1 node" in what for what in told), told
    assert f"the save of step {seen['step']} was cut anew for 1 ranks" in (folder / "trainer.log").read_text()
    print(run.seconds, told)


def small(folder: Path, address: str) -> Path:
    """The recipe on the budget of the profile `small`."""
    recipe, budget = (yaml.safe_load(path.read_text()) for path in (ROOT / "examples" / "two_nodes.yaml", FOLDER / "small.yaml"))
    budget["training"] |= recipe["training"] | {"steps": 4}
    budget["ray"] = recipe["ray"] | {"address": address, "patience_s": 5}
    (folder / "two_nodes_small.yaml").write_text(yaml.safe_dump(budget))
    return folder / "two_nodes_small.yaml"


def saved(home: Path) -> list[int]:
    folder = training_of(home)
    return whole_saves(folder / "saves") if folder else []


def places(nodes: Nodes, actor: str) -> list[str]:
    """Where the live actors of this class are, by Ray's state API."""
    ips = {node["node_id"]: node["node_ip"] for node in nodes.state("nodes")}
    return sorted(ips[each["node_id"]] for each in nodes.state("actors") if each["class_name"].endswith(actor) and each["state"] == "ALIVE")
