"""The table of stages: a stage runs again when the code that it imports has changed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from artifacts.code_hash import ROOT
from assets.stages import PREPARING, STAGES, TABLE
from problems.sources import simple
from resources.home import Home
from resources.run_record import PipelineRun
from tests.open_runs import open_test_run

BUILD = """
import sys
from pathlib import Path
import dagster as dg
from resources.run_context import RunContext
from resources.settings import Settings
from resources.home import Home
from pipelines.definitions import defs
home = Path(sys.argv[1])
context = RunContext.of(Settings(Home(home), str(home.with_suffix(".yaml"))))
with dg.instance_for_test() as instance:
    job = defs.resolve_job_def("refresh_data")
    assert job.execute_in_process(instance=instance, resources=context.resources).success
"""


def test_every_stage_names_its_file_and_stages_of_the_table() -> None:
    names = STAGES.keys() | {"problem_sources"}
    assert [stage.name for stage in TABLE if not set(stage.after) <= names] == []
    kept = [stage.code for stage in TABLE if stage.kind]
    assert len(set(kept)) == len(kept)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("code")
    for package in sorted(path.parent.name for path in ROOT.glob("*/__init__.py")):
        if package not in ("tests", "measurements"):
            ignore = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / package, folder / package, ignore=ignore)
    for name in ("pyproject.toml", "dagster.yaml"):
        shutil.copy(ROOT / name, folder)
    shipped = folder / simple.FILE.relative_to(ROOT)
    content = json.loads(shipped.read_text(encoding="utf-8"))
    shipped.write_text(json.dumps(content | {"problems": content["problems"][:2]}), "utf-8")
    return folder


def build(copy: Path, home: Path) -> list[str]:
    """Build the dataset with the copy's code; return how each stage ended: made, or found."""
    subprocess.run(
        [sys.executable, "-c", BUILD, str(home)],
        cwd=copy,
        env=os.environ | {"PYTHONPATH": str(copy)},
        check=True,
        capture_output=True,
    )
    lines = (home / "runs" / "data" / "progress.jsonl").read_text(encoding="utf-8").splitlines()
    events = [json.loads(line)["event"] for line in lines]
    return [event for event in events if event in ("end", "found")][-len(PREPARING) :]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_an_edit_runs_its_stage_again_and_none_before_it(copy: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.with_suffix(".yaml").write_text(
        "family: {demonstrations: 2, train: 2, validation: 1}\naugmentation: {kinds: [constant]}\n",
        encoding="utf-8",
    )
    assert build(copy, home) == ["end"] * 5
    edit(copy / "assets" / "pictures.py")  # it shows artifacts, and makes none
    edit(copy / "problems" / "augmentation" / "variants.py")
    assert build(copy, home) == ["found", "found", "end", "found", "found"]


def edit(file: Path) -> None:
    file.write_text(file.read_text(encoding="utf-8") + "\nEDITED = True\n", encoding="utf-8")


def test_a_resumed_run_keeps_what_it_made_with_edited_code(tmp_path: Path) -> None:
    def opened(id: str, kind: str) -> PipelineRun:
        return open_test_run(Home(tmp_path).runs, id, kind=kind)

    run, dataset = opened("chain-0001", "pipeline"), opened("data", "data")
    for each in (run, dataset):
        each.keep_code("sft_checkpoint", "before the edit")
    assert run.code_of("sft_checkpoint") == "before the edit"
    assert dataset.code_of("sft_checkpoint") == ""  # `ratchet data build` makes the newest
    run.change(state="done")
    assert run.code_of("sft_checkpoint") == ""
