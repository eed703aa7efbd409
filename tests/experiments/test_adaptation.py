"""`ratchet adapt`: each way is measured once, on held-out problems, and resumes after a kill."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from rich.console import Console

from evaluation.sampling import Sampling
from experiments.adapt import adapt, checkpoint_folder, read_family
from experiments.adaptation import ALL, AdaptationRow, AdaptationStudy, Family
from problems.demonstrations import demonstration
from problems.embedded import families
from problems.embedded.compositional import generate
from problems.embedded.settings import FamilyConfig
from problems.schema import write_parquet
from resources.home import NotReady
from resources.settings import Settings
from sandbox.sandbox import Sandbox
from tests.pipelines.home_builder import HomeBuilder
from verl_jobs.config.lora import Lora
from verl_jobs.sft.adaptation import Adaptation
from verl_jobs.sft.tiny_model import TinyModel, make

pytestmark = pytest.mark.slow  # seven cells, each with training, generation and judging

FAMILY = FamilyConfig(demonstrations=40, train=2, validation=2)
CONFIG = Adaptation(shots=(1, 16), ways=("prompt", "all", "lora"), lora=Lora(rank=2), threads=1)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> AdaptationStudy:
    folder = tmp_path_factory.mktemp("adaptation")
    texts = [
        text
        for problem in generate(FAMILY)
        if problem.split == "demonstrations"
        for text in (problem.statement, demonstration(problem))
    ]
    make(TinyModel(hidden=32, layers=2), texts, folder / "start")
    parity = Family(
        "parity",
        tuple(families.examples(FAMILY, "parity", 16)),
        tuple(families.heldout(FAMILY, "parity", 6)),
    )
    return AdaptationStudy(
        folder / "start", (parity,), CONFIG, Sampling(max_new_tokens=8), folder / "study"
    )


@pytest.fixture(scope="module")
def rows(study: AdaptationStudy, sandbox: Sandbox) -> list[AdaptationRow]:
    """The rows of a study that was killed after three cells."""
    process = multiprocessing.get_context("fork").Process(target=run_three_cells, args=(study,))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    measured = {path: path.stat().st_mtime_ns for path in (study.folder / "cells").iterdir()}
    assert len(measured) == 3
    rows = study.run(sandbox)
    assert all(path.stat().st_mtime_ns == at for path, at in measured.items()), "measured again"
    return rows


def run_three_cells(study: AdaptationStudy) -> None:
    def kill_after_three(name: str, done: int, total: int) -> None:
        if done == 3:
            os.kill(os.getpid(), signal.SIGKILL)

    torch.set_num_threads(1)  # a forked process has no thread pool
    with Sandbox() as sandbox:
        study.run(sandbox, kill_after_three)


def test_every_way_has_a_row_for_every_k(rows: list[AdaptationRow]) -> None:
    expected = [("start", 0)] + [(way, k) for k in CONFIG.shots for way in CONFIG.ways]
    assert [(row.way, row.k) for row in rows if row.family == "parity"] == expected
    assert [(row.way, row.k) for row in rows if row.family == ALL] == expected
    assert all(
        row.tasks == 6 and row.interval.low <= row.share <= row.interval.high and row.seconds > 0
        for row in rows
        if not row.note
    )


def test_a_prompt_that_is_too_long_is_noted_and_not_scored(rows: list[AdaptationRow]) -> None:
    notes = {(row.way, row.k): row.note for row in rows if row.note}
    assert list(dict.fromkeys(notes)) == [("prompt", 16)]
    assert "tokens longer than the model's positions allow" in notes["prompt", 16]


def test_a_measured_cell_is_not_measured_again(
    study: AdaptationStudy, rows: list[AdaptationRow], sandbox: Sandbox
) -> None:
    before = {path.name: path.stat().st_mtime_ns for path in (study.folder / "cells").iterdir()}
    assert study.run(sandbox) == rows
    assert {
        path.name: path.stat().st_mtime_ns for path in (study.folder / "cells").iterdir()
    } == before


def test_the_result_holds_all_inputs_that_reproduce_it(
    study: AdaptationStudy, rows: list[AdaptationRow]
) -> None:
    result = json.loads((study.folder / "result.json").read_text())
    assert [AdaptationRow.model_validate(row) for row in result["rows"]] == rows
    manifest = result["reproduce"]
    assert set(manifest["inputs"]) == {"start", "parity"}
    assert Adaptation.model_validate(manifest["config"]["adaptation"]) == CONFIG
    assert manifest["code_version"]
    assert manifest["packages"]["torch"]
    assert not list((study.folder / "adapted").glob("*")), (
        "adapted checkpoints are removed unless keep is set"
    )


def test_the_command_prints_the_table_and_the_results_path(
    study: AdaptationStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RATCHET_HOME", str(tmp_path))
    changes = ("families=[digits]", "shots=[1]", "ways=[prompt]", "problems=3", "frozen=[]")
    monkeypatch.setenv("RATCHET_SET", "\n".join(f"adaptation.{change}" for change in changes))
    console = Console(record=True, width=160)
    assert adapt(str(study.start), None, False, Settings.read(), console) == 0
    output = console.export_text()
    assert re.search(r"digits +prompt +1 +[\d.]+% of 3", output)
    [result] = tmp_path.glob("adaptations/*/result.json")
    assert str(result) in output.replace("\n", "")


@pytest.mark.parametrize("name", ["champion", "2", "two", "challenger"])
def test_a_start_is_named_as_in_other_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    builder = HomeBuilder(tmp_path / "home")
    monkeypatch.setenv("RATCHET_HOME", str(tmp_path / "home"))
    with pytest.raises(NotReady, match="there is no champion yet"):
        checkpoint_folder("champion", Settings.read())
    first, second = builder.promoted("one"), builder.promoted("two", solved=90)
    assert checkpoint_folder(name, Settings.read()) == second.path
    assert checkpoint_folder("previous", Settings.read()) == first.path


def test_a_folder_without_a_checkpoint_is_refused_before_any_measurement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RATCHET_HOME", str(tmp_path / "home"))
    with pytest.raises(NotReady, match=r"no config.json"):
        adapt(str(tmp_path), None, False, Settings.read(), Console())
    assert not (tmp_path / "home" / "adaptations").exists()


def test_own_examples_and_held_out_problems_are_disjoint(tmp_path: Path) -> None:
    problems = [problem for problem in generate(FAMILY) if problem.split == "demonstrations"]
    write_parquet(problems, tmp_path / "mine.parquet")
    family = read_family(tmp_path / "mine.parquet", Adaptation(shots=(1, 4), problems=10))
    assert (family.name, len(family.examples), len(family.heldout)) == ("mine", 4, 10)
    assert not {p.statement for p in family.examples} & {p.statement for p in family.heldout}
    with pytest.raises(ValueError, match=r"64 examples.*adaptation.shots"):
        read_family(tmp_path / "mine.parquet", Adaptation())
