"""Scores are generated on the Ray that trains, and the run's process reads them without torch.

The Ray is a real one of this machine, with a GPU by its options and none in fact.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluation.scorecard import Scorecard
from resources.ray.head import PRELOADED
from resources.ray.private import Private
from tests.pipelines import daily_validation
from tests.pipelines.home_builder import HomeBuilder
from tests.pipelines.test_stale_scores import cleaned
from tests.serving import vllm_stand_in
from tests.verl_jobs.test_job import a_job

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def dashboard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start a Ray whose node has a GPU for Ray, and `python` and `vllm` on its PATH."""
    folder = tmp_path_factory.mktemp("ray")
    programs = (str(vllm_stand_in.install(folder / "programs")), str(Path(sys.executable).parent))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", os.pathsep.join((*programs, os.environ["PATH"])))
        for variable in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN_PATH"):  # that it sets in this process
            patch.setenv(variable, "")
        patch.setenv(PRELOADED, "")  # scores need none of what a training's workers import first
        ray = Private(folder, a_job(folder / "job"))
        try:
            yield ray.dashboard()
        finally:
            ray.end()


@pytest.fixture
def here(home_builder: HomeBuilder) -> Scorecard:
    """Score a tiny model, the champion, in this process."""
    cleaned(home_builder, 12, "one")
    home_builder.tiny_champion(["return the sum of x"] * 8)
    daily_validation.validate(home_builder.run_context.home.path)
    return stored(home_builder)


def stored(home_builder: HomeBuilder) -> Scorecard:
    return Scorecard.stored(home_builder.run_context.store.require("scores", "tiny--validation"))


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("engine", ["hf", pytest.param("vllm", marks=pytest.mark.soak)])
def test_a_ray_with_gpus_gives_the_same_verdicts_and_the_run_imports_no_torch(
    engine: str, here: Scorecard, home_builder: HomeBuilder, dashboard: str
) -> None:
    home = home_builder.run_context.home.path
    for journal in (home / "answers").glob("*.jsonl"):
        journal.unlink()
    changes = (f"ray.address={dashboard}", f"training.engine={engine}")
    run = subprocess.run(
        [sys.executable, daily_validation.__file__, str(home), *changes],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert run.stdout.splitlines()[-1] == "False"
    [journal] = (home / "answers").glob("*.jsonl")
    head = json.loads(journal.read_text(encoding="utf-8").splitlines()[0])
    assert head["who"]["engine"] == {"hf": "transformers, cpu", "vllm": "vllm"}[engine]
    there = stored(home_builder)
    assert [(s.task_id, s.verdict, s.completion) for s in there.samples] == [
        (s.task_id, s.verdict, s.completion) for s in here.samples
    ]
