"""`ratchet reviewer` makes records, trains a reviewer, and refuses bad input."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

import cli.reviewer
from artifacts.manifest import Manifest
from assets.training_rows import check_conversations
from cli.reviewer import records, reinforce, reviewer_job, teach
from problems.columns import ProblemError
from problems.dataset.rl_parquet import problem_from_ground_truth
from problems.embedded.compositional import generate
from problems.embedded.settings import FamilyConfig
from problems.prompt import prompt_text
from problems.schema import Problem, write_parquet
from resources import lease
from resources.home import Home, NotReady
from resources.ray.private import TrainingFailed
from resources.settings import Settings
from tests.lease_holder import holding
from tests.pipelines.home_builder import HomeBuilder
from verl_jobs.agents.records import read_reviews
from verl_jobs.agents.supervised import ReviewerTraining, command
from verl_jobs.job import TrainingJob
from verl_jobs.sft.tiny_model import TinyModel, make


def home_with(problems: list[Problem], path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = HomeBuilder(path).run_context.store
    with store.draft("datasets", "clean_problems") as folder:
        write_parquet(problems, folder / "problems.parquet")
        store.publish(
            folder,
            Manifest(kind="datasets", name="clean_problems", key="clean_problems", content_hash=""),
        )
    monkeypatch.setenv("RATCHET_HOME", str(path))


FAMILY = generate(FamilyConfig(demonstrations=4, train=4, validation=2, visible_tests=2))


def quiet() -> Console:
    return Console(file=io.StringIO(), width=200)


def test_records_come_from_the_clean_problems_of_the_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home_with(FAMILY, tmp_path / "home", monkeypatch)
    assert records(tmp_path / "reviews.parquet", Settings.read(), quiet()) == 0
    reviews = read_reviews(tmp_path / "reviews.parquet")
    assert reviews
    assert {review.problem_id.split("/")[1] for review in reviews} <= {
        "demonstrations",
        "train",
    }


def test_peoples_reviews_are_records_of_programs_that_fail_a_visible_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home_with(FAMILY, tmp_path / "home", monkeypatch)
    train = next(problem for problem in FAMILY if problem.split == "train")
    held_out = next(problem for problem in FAMILY if problem.split == "validation")
    wrong = f"def {train.entry_point}(*values):\n    return None\n"
    rows = [
        {"problem_id": train.problem_id, "program": wrong, "comment": "It returns nothing."},
        {"problem_id": train.problem_id, "program": train.solutions[0], "comment": "Wrong."},
        {"problem_id": held_out.problem_id, "program": wrong, "comment": "It returns nothing."},
    ]
    human, to = tmp_path / "human.jsonl", tmp_path / "reviews.parquet"
    human.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    console = quiet()
    assert records(to, Settings.read(), console, human) == 0
    [review] = read_reviews(to)
    assert (review.problem_id, review.comment) == (train.problem_id, "It returns nothing.")
    assert review.messages[-1] == {"role": "assistant", "content": "It returns nothing."}
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue().count(f"left out: 1 of {human}") == 2
    human.write_text(json.dumps(rows[0] | {"problem_id": "none/1"}), encoding="utf-8")
    with pytest.raises(ProblemError, match=r"human\.jsonl: line 1: no problem 'none/1'"):
        records(to, Settings.read(), quiet(), human)


def test_problems_without_visible_tests_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blind = [replace(problem, visible_tests=0) for problem in FAMILY]
    home_with(blind, tmp_path / "home", monkeypatch)
    with pytest.raises(NotReady, match=r"family\.visible_tests=2"):
        records(tmp_path / "reviews.parquet", Settings.read(), quiet())
    with pytest.raises(NotReady, match=r"training\.prompt_tokens"):
        check_conversations(blind)
    check_conversations(FAMILY)


def test_missing_options_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RATCHET_HOME", str(tmp_path / "none"))
    with pytest.raises(FileNotFoundError, match="--from"):
        teach(tmp_path, tmp_path / "r.parquet", tmp_path / "to", ReviewerTraining(), quiet())
    with pytest.raises(NotReady, match="--generator"):
        reinforce(tmp_path, tmp_path / "to", Settings.read(), quiet())


def test_the_reviewer_trains_only_on_ungated_training_problems(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow.parquet as pq

    set_reviewer(monkeypatch, tmp_path)
    gated = replace(FAMILY[4], problem_id="embedded/train/gated", gated=True, split="train")
    job = reviewer_job(tmp_path, tmp_path / "better", [*FAMILY, gated], Settings.read().profile)
    rows = pq.read_table(job.train).to_pylist()
    assert len(rows) == 4
    assert all(
        problem_from_ground_truth(row["reward_model"]["ground_truth"]).split == "train"
        for row in rows
    )


def test_each_start_generator_and_dataset_has_its_own_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("start", "other", "generator"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.safetensors").write_text(name)
    set_reviewer(monkeypatch, tmp_path / "generator")

    def job(start: str = "start", problems: list[Problem] = FAMILY) -> TrainingJob:
        return reviewer_job(
            tmp_path / start, tmp_path / "better", problems, Settings.read().profile
        )

    first = job()
    assert job() == first
    assert first.path.parent == tmp_path / ".better.training"
    others = [job("other"), job(problems=FAMILY[:-1])]
    (tmp_path / "generator" / "model.safetensors").write_text("trained on")
    assert len({each.folder for each in (first, *others, job())}) == 4


def set_reviewer(monkeypatch: pytest.MonkeyPatch, generator: Path, *changes: str) -> None:
    """Set the options as the command line does, and skip the memory check."""
    monkeypatch.setenv(
        "RATCHET_SET",
        "\n".join(
            ["training.agents.trains=reviewer", f"training.agents.generator={generator}", *changes]
        ),
    )
    monkeypatch.setattr(Home, "check_capacity", lambda *_, **__: None)


@pytest.mark.slow
def test_the_reviewer_trains_under_the_lease_of_the_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home_with(FAMILY, tmp_path / "home", monkeypatch)
    make(TinyModel(), [prompt_text(problem) for problem in FAMILY], tmp_path / "start")
    set_reviewer(monkeypatch, tmp_path / "start")
    lease_file, trained = Home(tmp_path / "home").lease, []

    def trains(job: TrainingJob, _: object) -> None:
        trained.append(lease.holder(lease_file))
        raise TrainingFailed("enough")

    monkeypatch.setattr(cli.reviewer, "train", trains)
    with holding(lease_file), pytest.raises(lease.LeaseHeld):
        reinforce(tmp_path / "start", tmp_path / "better", Settings.read(), quiet())
    assert not trained
    with pytest.raises(TrainingFailed):
        reinforce(tmp_path / "start", tmp_path / "better", Settings.read(), quiet())
    assert trained[0]
    assert trained[0].run_id == "reviewer-better"
    assert lease.holder(lease_file) is None


def test_a_reviewer_passes_the_preflight_checks_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home_with(FAMILY, tmp_path / "home", monkeypatch)
    set_reviewer(monkeypatch, tmp_path, "training.engine=vllm")
    with pytest.raises(NotReady, match="/start"):
        reinforce(tmp_path / "start", tmp_path / "better", Settings.read(), quiet())
    make(TinyModel(), [prompt_text(problem) for problem in FAMILY], tmp_path / "start")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(NotReady, match="GPUs"):
        reinforce(tmp_path / "start", tmp_path / "better", Settings.read(), quiet())
    assert not (tmp_path / ".better.training").exists()


def test_a_curriculum_is_refused_for_a_reviewer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home_with(FAMILY, tmp_path / "home", monkeypatch)
    make(TinyModel(), [prompt_text(problem) for problem in FAMILY], tmp_path / "start")
    set_reviewer(monkeypatch, tmp_path / "start", "training.curriculum.schedule=weighted")
    monkeypatch.setattr(cli.reviewer, "train", lambda *_: pytest.fail("the training started"))
    with pytest.raises(NotReady, match=r"training\.curriculum\.schedule=uniform"):
        reinforce(tmp_path / "start", tmp_path / "better", Settings.read(), quiet())
    assert not (tmp_path / ".better.training").exists()


def test_each_key_of_the_lessons_is_passed_once(tmp_path: Path) -> None:
    arguments = command(
        tmp_path, tmp_path / "r.parquet", tmp_path, ReviewerTraining(steps=3, learning_rate=2e-4)
    )
    keys = [line.split("=")[0] for line in arguments[5:]]
    assert len(keys) == len(set(keys))
    assert "trainer.total_training_steps=3" in arguments
    assert "optim.lr=0.0002" in arguments
