"""verl's actor on one and two ranks: equal losses, resharding and planned memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from verl_jobs.config.scale import ScaleSettings
from verl_jobs.config.training import Training
from verl_jobs.planner.memory import cpu_phases
from verl_jobs.planner.shapes import shape_of
from verl_jobs.sft.tiny_model import TinyModel, make
from verl_jobs.trainer.checkpoints import damage, seal_save
from verl_jobs.trainer.resharding import KINDS, reshard

ROOT = Path(__file__).parents[2]
PROMPT, COMPLETION, COUNT = 88, 40, 32

pytestmark = [pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    make(TinyModel(), ["def solve(x): return x"], folder)
    return folder


def training(ranks: int) -> Training:
    return Training(
        threads=1,
        ranks=ranks,
        problems_per_step=4,
        group_size=8,
        prompt_tokens=PROMPT,
        answer_tokens=COMPLETION,
        scale=ScaleSettings(updates=2),
    )


def trained(model: Path, ranks: int, **changes: Any) -> dict[str, Any]:
    """Train two steps of two updates and return the figures of rank 0."""
    task = {
        "model": str(model),
        "training": training(ranks).model_dump(),
        "prompt": PROMPT,
        "answer": COMPLETION,
        "count": COUNT,
        "steps": 2,
    } | changes
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        f"--nproc_per_node={ranks}",
        "--rdzv-backend=c10d",
        "--rdzv-endpoint=127.0.0.1:0",
    ]
    command += [
        "--local-addr=127.0.0.1",
        str(Path(__file__).with_name("rank.py")),
        json.dumps(task),
    ]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    run = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr[-3000:]
    figures: dict[str, Any] = json.loads(
        next(line for line in run.stdout.splitlines() if line.startswith('{"losses"'))
    )
    return figures


@pytest.fixture(scope="module")
def alone(model: Path) -> dict[str, Any]:
    return trained(model, 1, memory=True, rollout=True)


@pytest.mark.slow
def test_two_ranks_have_the_losses_of_one(model: Path, alone: dict[str, Any]) -> None:
    both = trained(model, 2)
    assert len(alone["losses"]) == 4
    assert len(set(alone["losses"])) == 4
    assert both["losses"] == pytest.approx(alone["losses"], abs=1e-4)
    assert both["grad_norms"] == pytest.approx(alone["grad_norms"], abs=1e-4)


@pytest.mark.soak
def test_one_rank_resumes_from_the_checkpoint_of_two(
    model: Path, alone: dict[str, Any], tmp_path: Path
) -> None:
    save = tmp_path / "global_step_1"
    trained(model, 2, save=str(save / "actor"))
    seal_save(save)
    assert reshard(save, 1)
    assert not reshard(save, 1)
    assert not damage(save)
    after = trained(model, 1, load=str(save / "actor"))  # with moments and learning rate
    assert after["losses"] == pytest.approx(alone["losses"][2:], abs=1e-4)
    assert after["grad_norms"] == pytest.approx(alone["grad_norms"][2:], abs=1e-4)


def test_a_conversion_that_was_killed_is_done_again(tmp_path: Path) -> None:
    for kind in KINDS:
        for rank in range(2):
            path = tmp_path / "actor" / f"{kind}_world_size_2_rank_{rank}.pt"
            path.parent.mkdir(exist_ok=True)
            torch.save({"step": 7}, path)
    seal_save(tmp_path)
    (tmp_path / "actor" / "model_world_size_1_rank_0.pt").write_bytes(b"PK")  # the kill's
    assert reshard(tmp_path, 1)
    assert not damage(tmp_path)
    assert not reshard(tmp_path, 1)
    for kind in KINDS:
        assert torch.load(tmp_path / "actor" / f"{kind}_world_size_1_rank_0.pt") == {"step": 7}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("phase", "name"),
    [
        ("writes", "rollout"),
        ("old log-probabilities", "old log-probabilities"),
        ("update", "update"),
    ],
)
def test_planned_memory_of_each_phase_is_within_15_percent(
    model: Path, alone: dict[str, Any], phase: str, name: str
) -> None:
    planned = sum(cpu_phases(shape_of(str(model)), training(1))[phase].values())
    assert planned == pytest.approx(alone["peak_bytes"][name], rel=0.15)
