"""The curricula in verl's dataset, sampler and dataloader, and in short trainings.

One training has a curriculum of problems and of lengths.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from artifacts.tensors import weights_hash
from problems.dataset.rl_parquet import write_verl
from problems.difficulty.pass_rate_prior import (
    FILE,
    ExpectedPassRate,
    read_expected,
    write_expected,
)
from problems.embedded.compositional import FamilyConfig, generate
from problems.schema import Problem
from rewards.composite import RewardConfig
from tests.verl_jobs.real_trainings import run
from verl_jobs import samples
from verl_jobs.config.answer_stages import AnswerStage
from verl_jobs.config.curriculum import Curriculum
from verl_jobs.config.training import Training
from verl_jobs.curriculum import draws
from verl_jobs.job import TrainingJob, candidates, metrics
from verl_jobs.samples import CUT
from verl_jobs.sft.tiny_model import TinyModel, make

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]
BATCH = 4
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a tiny model, 24 training problems (row k has pass rate k / 24) and 4 for validation."""
    folder = tmp_path_factory.mktemp("rows")
    family = generate(FamilyConfig(demonstrations=8, train=24, validation=4))
    train = [problem for problem in family if problem.split == "train"]
    write_verl(train, folder / "train.parquet")
    write_verl(
        [problem for problem in family if problem.split == "validation"],
        folder / "validation.parquet",
    )
    write_expected(
        [
            ExpectedPassRate(each.problem_id, (k + 0.5) / len(train), 0, 0, 1.0)
            for k, each in enumerate(train)
        ],
        folder / FILE,
    )
    make(TinyModel(hidden=32, layers=1), [_text(problem) for problem in family], folder / "model")
    return folder


def _text(problem: Problem) -> str:
    return problem.statement + problem.solutions[0]


@pytest.fixture
def without_table() -> Iterator[None]:
    yield
    from verl_jobs.curriculum import curriculum

    curriculum._present = None


def loader(
    rows: Path, schedule: str, files: str = "train", dataset_class: str = "CurriculumDataset"
) -> Any:
    """Return the dataloader of verl's trainer (trainer_base.py, `_init_dataloader`)."""
    from omegaconf import OmegaConf
    from torchdata.stateful_dataloader import StatefulDataLoader
    from transformers import AutoTokenizer
    from verl.trainer.ppo.utils import create_rl_dataset, create_rl_sampler
    from verl.utils.dataset.rl_dataset import collate_fn

    train, validation = str(rows / "train.parquet"), str(rows / "validation.parquet")
    plan = Curriculum.model_validate({"schedule": schedule}).model_dump() | {"steps": 10}
    config = OmegaConf.create(
        {
            "train_files": train,
            "val_files": validation,
            "seed": 7,
            "shuffle": True,
            "max_prompt_length": 512,
            "curriculum": plan,
            "custom_cls": {
                "path": "pkg://verl_jobs.curriculum.curriculum_dataset",
                "name": dataset_class,
            },
        }
    )
    tokenizer = AutoTokenizer.from_pretrained(rows / "model")
    dataset = create_rl_dataset(
        train if files == "train" else validation,
        config,
        tokenizer,
        None,
        is_train=files == "train",
    )
    return StatefulDataLoader(
        dataset,
        batch_size=BATCH,
        num_workers=0,
        drop_last=True,
        collate_fn=collate_fn,
        sampler=create_rl_sampler(config, dataset),
    )


def a_step(batches: Iterator[Any]) -> list[str]:
    """Draw a batch and observe one pass and one failure for each problem."""
    from verl_jobs.curriculum import curriculum

    problem_ids = [str(about["problem_id"]) for about in next(batches)["extra_info"]]
    table = curriculum.current_table()
    assert table
    table.observe([(problem_id, passed) for problem_id in problem_ids for passed in (True, False)])
    return problem_ids


@pytest.mark.usefixtures("without_table")
def test_verl_dataloader_yields_the_drawn_problems_and_resumes(
    rows: Path,
) -> None:
    first = loader(rows, "competence")
    batches = iter(first)
    first_draws = [a_step(batches) for _ in range(3)]
    assert all(len(set(batch)) == BATCH for batch in first_draws)
    assert set(first_draws[0]) == {
        row.problem_id for row in read_expected(rows / FILE)[-BATCH:]
    }  # the easiest first
    state = first.state_dict()  # verl writes this to data.pt
    next_draws = [a_step(batches) for _ in range(3)]
    again = loader(rows, "competence")
    again.load_state_dict(state)
    resumed = iter(again)
    assert [a_step(resumed) for _ in range(3)] == next_draws
    assert (
        a_step(iter(loader(rows, "competence"))) == first_draws[0]
    )  # without the state it starts over


@pytest.mark.usefixtures("without_table")
def test_a_custom_dataset_class_is_drawn_by_the_curriculum(rows: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from verl.utils.dataset.rl_dataset import RLHFDataset\n"
        "class Mine(RLHFDataset):\n"
        "    def __getitem__(self, item):\n"
        "        return super().__getitem__(item) | {'mine': True}\n"
    )
    ours = a_step(iter(loader(rows, "competence")))
    batches = iter(loader(rows, "competence", dataset_class=f"{tmp_path}/mine.py:Mine"))
    batch = next(batches)
    assert [about["problem_id"] for about in batch["extra_info"]] == ours
    assert all(batch["mine"])


@pytest.mark.usefixtures("without_table")
def test_the_table_continues_over_epochs(rows: Path) -> None:
    from verl_jobs.curriculum import curriculum

    whole = loader(rows, "window")
    for _ in range(2):
        batches = iter(whole)
        for _ in range(24 // BATCH):
            a_step(batches)
    table = curriculum.current_table()
    assert isinstance(table, curriculum.Table)
    assert (table.step, table.draws) == (12, 12)


@pytest.mark.usefixtures("without_table")
def test_validation_problems_are_read_once_each(rows: Path) -> None:
    from verl_jobs.curriculum import curriculum

    batch = next(iter(loader(rows, "window", files="validation")))
    assert len({about["problem_id"] for about in batch["extra_info"]}) == 4
    assert curriculum.current_table() is None


def a_job(
    rows: Path,
    folder: Path,
    plan: Curriculum,
    steps: int,
    save_every: int,
    stages: tuple[AnswerStage, ...] = (),
) -> TrainingJob:
    training = Training(
        steps=steps,
        problems_per_step=BATCH,
        group_size=2,
        save_every=save_every,
        answer_tokens=16,
        answer_stages=stages,
        curriculum=plan,
        threads=1,
    )
    return TrainingJob(
        folder=str(folder),
        run_id="c",
        start=str(rows / "model"),
        train=str(rows / "train.parquet"),
        validation=str(rows / "validation.parquet"),
        inputs={},
        training=training,
        reward=RewardConfig(),
        reward_hash="",
        isolation="auto",
        seed=5,
    )


def trained(job: TrainingJob) -> list[list[draws.Draw]]:
    """Run a training with real verl and return the draws of each step."""
    run(job)
    return [draws.read(job.path, step) for step in range(1, job.training.steps + 1)]


@pytest.fixture(scope="module")
def both(rows: Path, tmp_path_factory: pytest.TempPathFactory) -> TrainingJob:
    """Train with the curriculum of the example, and two stages of a length curriculum."""
    recipe = yaml.safe_load((ROOT / "examples" / "curriculum.yaml").read_text(encoding="utf-8"))[
        "training"
    ]
    job = a_job(
        rows,
        tmp_path_factory.mktemp("both") / "job",
        Curriculum.model_validate(recipe["curriculum"]),
        steps=3,
        save_every=1,
        stages=(AnswerStage(until=1, tokens=4), AnswerStage(until=2, tokens=8)),
    )
    trained(job)
    return job


def test_completions_are_as_long_as_the_stage_of_their_step_allows(both: TrainingJob) -> None:
    """An untrained model rarely generates the end token."""
    from verl_jobs.trainer.replay_buffer import LIMIT

    steps = [row for row in metrics(both.path) if row["step"] > 0]
    assert [row[LIMIT] for row in steps] == [4, 8, 16]
    assert [row["response_length/max"] for row in steps] == [4, 8, 16]
    assert all(row[CUT] > 0.5 for row in steps)


def test_each_completion_names_the_weights_that_sampled_it(both: TrainingJob) -> None:
    """Those of the start, then of the checkpoint of the step before."""
    named = [{each.weights for each in samples.read(both.path, step)} for step in (1, 2, 3)]
    assert named[0] == {weights_hash(Path(both.start))}
    saved = candidates(both.path)
    assert {step: named[step] for step in (1, 2) if step in saved} == {
        step: {weights_hash(path)} for step, path in saved.items() if step < 3
    }
    assert len(set.union(*named)) == 3


def test_a_training_follows_its_curriculum_and_saves_its_table(both: TrainingJob) -> None:
    import torch

    job = both
    batches = [draws.read(job.path, step) for step in range(1, 4)]
    for step, batch in enumerate(batches, 1):
        assert {draw.problem_id for draw in batch} == {
            sample.problem_id for sample in samples.read(job.path, step)
        }
        assert [draw.n for draw in batch] == [2] * BATCH
    steps = [row for row in metrics(job.path) if row["step"] > 0]
    assert all(
        row["curriculum/pass_rate"] == pytest.approx(np.mean([d.pass_rate for d in batch]))
        for row, batch in zip(steps, batches, strict=True)
    )
    state = torch.load(job.path / "saves" / "global_step_3" / "data.pt", weights_only=False)[
        "dataset_state"
    ]
    assert (state["step"], state["draws"]) == (3, 3)
    assert state["failed"].sum() + state["passed"].sum() == pytest.approx(3 * 2 * BATCH, rel=0.2)


@pytest.mark.soak
@pytest.mark.timeout(1500)
def test_a_resumed_training_repeats_its_draws_and_weights(rows: Path, tmp_path: Path) -> None:
    job = a_job(rows, tmp_path / "job", Curriculum(schedule="window"), steps=4, save_every=2)
    batches, weights = trained(job), job.path / "candidates" / "step-000004" / "model.safetensors"
    learned = weights.read_bytes()
    (job.path / "done.json").unlink()
    for lost in (job.path / "saves" / "global_step_4", weights.parent, job.path / "draws"):
        shutil.rmtree(lost)
    assert trained(job)[2:] == batches[2:]
    assert weights.read_bytes() == learned
