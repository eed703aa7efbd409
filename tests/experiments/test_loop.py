"""The loop of all studies: after a kill, each cell has run exactly once to its end."""

from __future__ import annotations

import multiprocessing
import time
from collections import Counter
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import optuna
import pytest
from rich.console import Console

from experiments.ablate import BASELINE, heldout_benchmark, train_and_score
from experiments.loop import CellFailed, RunningCell, StudyRecord
from experiments.search import open_search, run_trial
from experiments.seeds import train_all
from experiments.study import Study
from experiments.trials import Trials
from experiments.tune import search
from tests.experiments.toy_study import card, changed, study_in

FORK = multiprocessing.get_context("fork")


def seeds(study: Study) -> None:
    train_all(study, [study.job(seed) for seed in (1001, 1002, 1003, 1004)], Console(quiet=True))


def ablate(study: Study) -> None:
    card("10", heldout_benchmark(study).version).write(study.home.path / "heldout.json")
    studies = {BASELINE: study, "learning_rate=1e-4": changed(study, "training.learning_rate=1e-4")}
    scores, failed = train_and_score(studies, 2, Console(quiet=True))
    assert len(scores) == 4
    assert not failed


def tune(study: Study) -> None:
    assert search(study, 4, 0.0, Console(quiet=True)).remaining == 0


def steps(study: Study) -> list[str]:
    log = study.home.path / "steps.log"
    return log.read_text().splitlines() if log.exists() else []


@pytest.mark.slow
@pytest.mark.parametrize("at_once", [1, 2])
@pytest.mark.parametrize("command", [seeds, ablate, tune])
def test_a_killed_study_resumes_and_repeats_no_step(
    tmp_path: Path, command: Callable[[Study], None], at_once: int
) -> None:
    study = changed(study_in(tmp_path), f"tuning.at_once={at_once}")
    process = FORK.Process(target=command, args=(study,))
    process.start()
    done = 0
    while not done or len(steps(study)) <= 5 * done:  # one has ended, another one has begun
        assert process.is_alive()
        time.sleep(0.02)
        done = len(list(study.home.runs.folder.glob("*/training/*/done.json")))
    process.kill()
    process.join()
    assert done < 4
    for _ in range(2):  # the second start finds nothing to do
        command(study)
    assert set(Counter(steps(study)).values()) == {1}, "a step was trained twice"
    storage = study.record("any", Console()).storage
    [kind, _] = optuna.get_all_study_names(storage)
    trials = optuna.load_study(study_name=kind, storage=storage).trials
    assert [each.state.is_finished() for each in trials] == [True] * 4


@pytest.mark.slow
def test_a_trial_that_is_worse_than_others_is_stopped(tmp_path: Path) -> None:
    study, console = study_in(tmp_path), Console(file=StringIO())
    record = open_search(study, "tune", 2, console)
    record.search.enqueue_trial({"training.learning_rate": 5e-5})  # waits at step 2 until it ends
    trials = Trials(record.search, study.job(1001))
    record.run(record.sampled(2), lambda trial: run_trial(trial, trials, study, console))
    assert [each.state.name for each in record.search.trials] == ["COMPLETE", "PRUNED"]
    assert trials.outcomes()[1].end == "others were better at step 2"


def test_a_failed_cell_runs_again_and_a_cell_without_a_value_does_not(tmp_path: Path) -> None:
    ran: list[str] = []

    def start(trial: optuna.Trial) -> RunningCell:
        ran.append(trial.user_attrs["cell"])
        yield from ()
        if trial.user_attrs["cell"] == "fails":
            raise CellFailed("no memory")
        return None

    printed = StringIO()
    console = Console(file=printed)
    for _ in range(2):
        record = StudyRecord(tmp_path, "study", console)
        record.run(record.named({"fails": "the first", "empty": "the second"}), start)
        assert record.failed == {"fails": "no memory"}
    assert ran == ["fails", "empty", "fails"]
    assert printed.getvalue().count("the first failed: no memory") == 2


def test_the_end_of_the_minutes_stops_the_cells_that_run(tmp_path: Path) -> None:
    ended: list[str] = []

    def start(trial: optuna.Trial) -> RunningCell:
        try:
            while True:
                yield
        finally:
            ended.append(trial.user_attrs["cell"])

    record = StudyRecord(tmp_path, "study", Console(quiet=True))
    record.run(record.named({"a": "a", "b": "b", "c": "c"}), start, at_once=2, minutes=1e-3)
    assert ended == ["a", "b"]
