"""The curricula in verl's dataset, sampler and dataloader."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from problems.dataset.rl_parquet import write_verl
from problems.difficulty.pass_rate_prior import (
    FILE,
    ExpectedPassRate,
    read_expected,
    write_expected,
)
from problems.embedded.compositional import generate
from problems.embedded.settings import FamilyConfig
from problems.schema import Problem
from verl_jobs.config.curriculum import Curriculum
from verl_jobs.sft.tiny_model import TinyModel, make

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]
BATCH = 4
ROOT = Path(__file__).resolve().parents[2]


def write_rows(folder: Path) -> Path:
    """Write a tiny model, 24 training problems (of pass rates from 0 to 1) and 4 for validation."""
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


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_rows(tmp_path_factory.mktemp("rows"))


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
def test_a_row_with_a_system_message_stays_where_the_template_takes_none(
    rows: Path, tmp_path: Path
) -> None:
    shutil.copytree(rows, tmp_path / "rows")
    template = tmp_path / "rows" / "model" / "chat_template.jinja"
    refuses = "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}"
    template.write_text(refuses + template.read_text())
    table = pq.read_table(tmp_path / "rows" / "train.parquet").to_pylist()
    for row in table:
        row["prompt"].insert(0, {"role": "system", "content": "Be short."})
    pq.write_table(pa.Table.from_pylist(table), tmp_path / "rows" / "train.parquet")
    batch = next(iter(loader(tmp_path / "rows", "uniform")))
    assert len(batch["raw_prompt"]) == BATCH
    for prompt in batch["raw_prompt"]:
        assert [message["role"] for message in prompt] == ["user"]
        assert prompt[0]["content"].startswith("Be short.\n\n")


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
