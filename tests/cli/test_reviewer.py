"""`ratchet reviewer` and what a chain refuses: the home is real, its dataset is made in a moment."""

from __future__ import annotations

import fcntl
import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

import cli.reviewer
from artifacts.manifest import Manifest
from assets.checkpoint import check_conversations
from cli.reviewer import records, reinforce, reviewer_job, teach
from pipelines.run_worker import BUSY
from problems.dataset.rl_parquet import problem_from_ground_truth, prompt_text
from problems.schema import Problem, write_parquet
from problems.sources.compositional import FamilyConfig, generate
from resources import lease
from resources.home import Home, NotReady
from resources.ray.private import TrainingFailed
from resources.settings import Settings
from tests.pipelines.home_builder import HomeBuilder
from verl_jobs.agents.records import read_reviews
from verl_jobs.agents.supervised import ReviewerTraining, command
from verl_jobs.config.agents import Agents
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


def test_records_are_made_of_the_home_s_clean_problems(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home_with(FAMILY, tmp_path / "home", monkeypatch)
    assert records(tmp_path / "reviews.parquet", Settings.read(), quiet()) == 0
    made = read_reviews(tmp_path / "reviews.parquet")
    assert made and {review.problem_id.split("/")[1] for review in made} <= {
        "demonstrations",
        "train",
    }


def test_problems_that_show_no_test_are_refused_with_the_mend(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blind = [replace(problem, visible_tests=0) for problem in FAMILY]
    home_with(blind, tmp_path / "home", monkeypatch)
    with pytest.raises(NotReady, match=r"family\.visible_tests=2"):
        records(tmp_path / "reviews.parquet", Settings.read(), quiet())
    with pytest.raises(NotReady, match=r"training\.prompt_tokens"):
        check_conversations(Agents(turns=2), blind)
    check_conversations(Agents(turns=2), FAMILY)


def test_a_chain_refuses_to_train_a_reviewer_and_names_the_command() -> None:
    with pytest.raises(NotReady, match="ratchet reviewer reinforce"):
        check_conversations(Agents(trains="reviewer", generator="g"), FAMILY)


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RATCHET_HOME", str(tmp_path / "none"))
    with pytest.raises(FileNotFoundError, match="give a Hugging Face folder with --from"):
        teach(tmp_path, tmp_path / "r.parquet", tmp_path / "to", ReviewerTraining(), quiet())
    with pytest.raises(NotReady, match="--generator"):
        reinforce(tmp_path, tmp_path / "to", Settings.read(), quiet())


def test_the_reviewer_s_job_trains_on_training_problems_and_never_on_gated_ones(
    tmp_path: Path,
) -> None:
    import pyarrow.parquet as pq

    gated = replace(FAMILY[4], problem_id="embedded/train/gated", gated=True, split="train")
    job = reviewer_job(tmp_path, tmp_path / "better", [*FAMILY, gated], Settings.read().profile)
    rows = pq.read_table(job.train).to_pylist()
    assert len(rows) == 4 and all(
        problem_from_ground_truth(row["reward_model"]["ground_truth"]).split == "train"
        for row in rows
    )


def test_another_start_generator_or_problem_goes_on_from_no_other_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("start", "other", "generator"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.safetensors").write_text(name)
    asked(monkeypatch, tmp_path / "generator")

    def job(start: str = "start", problems: list[Problem] = FAMILY) -> TrainingJob:
        return reviewer_job(
            tmp_path / start, tmp_path / "better", problems, Settings.read().profile
        )

    first = job()
    assert job() == first and first.path.parent == tmp_path / ".better.training"
    others = [job("other"), job(problems=FAMILY[:-1])]
    (tmp_path / "generator" / "model.safetensors").write_text("trained on")
    assert len({each.folder for each in (first, *others, job())}) == 4


def asked(monkeypatch: pytest.MonkeyPatch, generator: Path, *changes: str) -> None:
    """As the command line asks for it; the machine's memory is another test's matter."""
    monkeypatch.setenv(
        "RATCHET_SET",
        "\n".join(
            ["training.agents.trains=reviewer", f"training.agents.generator={generator}", *changes]
        ),
    )
    monkeypatch.setattr(Home, "check_room", lambda *_, **__: None)


def test_it_trains_under_the_home_s_lease_and_not_beside_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home_with(FAMILY, tmp_path / "home", monkeypatch)
    make(TinyModel(), [prompt_text(problem) for problem in FAMILY], tmp_path / "start")
    asked(monkeypatch, tmp_path / "start")
    lease_file, trained = Home(tmp_path / "home").lease, []

    def trains(job: TrainingJob, _: object) -> None:
        trained.append(lease.holder(lease_file))
        raise TrainingFailed("enough")

    monkeypatch.setattr(cli.reviewer, "train", trains)
    with lease_file.open("a") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        assert (
            reinforce(tmp_path / "start", tmp_path / "better", Settings.read(), quiet()) == BUSY
            and not trained
        )
    with pytest.raises(TrainingFailed):
        reinforce(tmp_path / "start", tmp_path / "better", Settings.read(), quiet())
    assert trained[0] and trained[0].chain == "reviewer-better" and lease.holder(lease_file) is None


def test_it_is_refused_where_a_training_is_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home_with(FAMILY, tmp_path / "home", monkeypatch)
    asked(monkeypatch, tmp_path, "training.engine=vllm")
    with pytest.raises(NotReady, match=r"no folder .*/start"):
        reinforce(tmp_path / "start", tmp_path / "better", Settings.read(), quiet())
    make(TinyModel(), [prompt_text(problem) for problem in FAMILY], tmp_path / "start")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(NotReady, match="needs as many GPUs"):
        reinforce(tmp_path / "start", tmp_path / "better", Settings.read(), quiet())
    assert not (tmp_path / ".better.training").exists()


def test_a_curriculum_is_refused_for_a_reviewer_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home_with(FAMILY, tmp_path / "home", monkeypatch)
    make(TinyModel(), [prompt_text(problem) for problem in FAMILY], tmp_path / "start")
    asked(monkeypatch, tmp_path / "start", "training.curriculum.schedule=weighted")
    monkeypatch.setattr(cli.reviewer, "train", lambda *_: pytest.fail("it began"))
    with pytest.raises(NotReady, match=r"training\.curriculum\.schedule=uniform"):
        reinforce(tmp_path / "start", tmp_path / "better", Settings.read(), quiet())
    assert not (tmp_path / ".better.training").exists()


def test_verl_is_told_each_key_of_the_lessons_once(tmp_path: Path) -> None:
    told = command(
        tmp_path, tmp_path / "r.parquet", tmp_path, ReviewerTraining(steps=3, learning_rate=2e-4)
    )
    keys = [line.split("=")[0] for line in told[5:]]
    assert (
        len(keys) == len(set(keys))
        and "trainer.total_training_steps=3" in told
        and "optim.lr=0.0002" in told
    )
