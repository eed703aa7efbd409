"""The recipe examples/two_nodes.yaml with real verl, on a Ray of two raylets on this machine.

One raylet or both are killed during training.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from safetensors.numpy import load_file

from resources.config.load import FOLDER
from tests.journeys.demo_run import demo, results_of, training_of, wait_until
from tests.resources.two_nodes import HEAD, OTHER, ROOT, Nodes, two_nodes
from verl_jobs import faults
from verl_jobs.config.overrides import TRACES
from verl_jobs.job import TrainingJob, metrics
from verl_jobs.trainer.checkpoints import complete_saves


@pytest.mark.soak
@pytest.mark.timeout(3000)
def test_a_run_on_two_nodes_survives_the_loss_of_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, observed = tmp_path / "home", dict[str, Any]()
    with two_nodes(1, str(ROOT)) as nodes:
        for name, value in (nodes.environment | {"PYTHONPATH": str(ROOT)}).items():
            monkeypatch.setenv(name, value)

        def lose_one(command: subprocess.Popen[bytes]) -> str:
            assert wait_until(lambda: saved_steps(home) or command.poll() is not None, 1500)
            assert command.poll() is None
            observed["ranks"] = node_ips(nodes, "WorkerDict")
            observed["step"] = saved_steps(home)[-1]
            nodes.kill(OTHER)
            return OTHER

        run = demo(home, kill=lose_one, profile=str(small(tmp_path, nodes.dashboard)), timeout=2500)
    assert run.code == 0, run.output[-3000:]
    assert observed["ranks"] == [HEAD, OTHER]
    folder = training_of(home)
    assert folder
    assert results_of(home).ledger
    assert [row["step"] for row in metrics(folder)][-1] == TrainingJob.read(
        folder / "job.json"
    ).training.steps
    events = [fault.what for fault in faults.read(folder)]
    assert any(re.search(r"\[1\] ranks.*1 rank on 1 node", event) for event in events), events
    resharded = rf"step {observed['step']}\b.*\b1 rank"
    assert re.search(resharded, (folder / "trainer.log").read_text())
    print(run.seconds, events)


@pytest.mark.soak
@pytest.mark.timeout(3000)
def test_a_conversation_training_survives_the_loss_of_its_ray(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The training has multi-turn completions, frozen layers and a trace, on a joined Ray.

    The number of ranks stays the same after the loss, now on one node.
    """
    home, observed = tmp_path / "home", list[int]()
    frozen = "model.embed_tokens.weight"
    with two_nodes(1, str(ROOT)) as nodes:
        for name, value in (nodes.environment | {"PYTHONPATH": str(ROOT)}).items():
            monkeypatch.setenv(name, value)

        def lose_all(command: subprocess.Popen[bytes]) -> str:
            assert wait_until(lambda: saved_steps(home) or command.poll() is not None, 1500)
            assert command.poll() is None
            observed.extend(saved_steps(home))
            nodes.kill(OTHER)
            nodes.kill(HEAD)
            return HEAD

        settings = {
            "agents": {"turns": 2},
            "prompt_tokens": 160,
            "frozen": [frozen],
            "trace": [1, 4],
        }
        run = demo(
            home,
            kill=lose_all,
            profile=str(small(tmp_path, nodes.dashboard, settings, visible_tests=2)),
            timeout=2500,
        )
    assert run.code == 0, run.output[-3000:]
    folder = training_of(home)
    assert folder
    assert results_of(home).ledger
    job = TrainingJob.read(folder / "job.json")
    last = metrics(folder)[-1]
    assert last["step"] == job.training.steps
    assert last["num_turns/mean"] > 2
    events = [fault.what for fault in faults.read(folder)]
    assert any("resumes here, on one node" in event for event in events), events
    before, after = (
        {
            name: each
            for file in path.glob("*.safetensors")
            for name, each in load_file(file).items()
        }
        for path in (Path(job.start), folder / "candidates" / "step-000004")
    )
    changed = {name for name in before if not (before[name] == after[name]).all()}
    assert changed == before.keys() - {frozen}
    assert list((folder / TRACES).glob("*.json.gz"))
    assert (folder / TRACES / "timeline.json").exists()
    print(run.seconds, observed, events)


def small(
    folder: Path, address: str, training: dict[str, Any] | None = None, visible_tests: int = 0
) -> Path:
    """Write the recipe with the budget of the profile `small` and with these changes."""
    recipe, budget = (
        yaml.safe_load(path.read_text())
        for path in (ROOT / "examples" / "two_nodes.yaml", FOLDER / "small.yaml")
    )
    budget["training"] |= recipe["training"] | {"steps": 4} | (training or {})
    budget["family"]["visible_tests"] = visible_tests
    budget["ray"] = recipe["ray"] | {"address": address, "patience_s": 5}
    (folder / "two_nodes_small.yaml").write_text(yaml.safe_dump(budget))
    return folder / "two_nodes_small.yaml"


def saved_steps(home: Path) -> list[int]:
    folder = training_of(home)
    return complete_saves(folder / "saves") if folder else []


def node_ips(nodes: Nodes, actor: str) -> list[str]:
    """Return the nodes of the live actors of this class, according to Ray's state API."""
    ips = {node["node_id"]: node["node_ip"] for node in nodes.state("nodes")}
    return sorted(
        ips[each["node_id"]]
        for each in nodes.state("actors")
        if each["class_name"].endswith(actor) and each["state"] == "ALIVE"
    )
