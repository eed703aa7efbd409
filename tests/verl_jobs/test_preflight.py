"""The preflight of a training refuses faulty data and models in one line with file and row."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from problems.dataset.rl_parquet import write_verl
from problems.prompt import TURNS
from problems.schema import Problem
from rewards.config import RewardConfig
from verl_jobs.config.training import Training
from verl_jobs.job import TrainingJob
from verl_jobs.planner.engine import check_engine
from verl_jobs.planner.preflight import CannotTrain, check
from verl_jobs.sft.start import UnfitStart
from verl_jobs.sft.tiny_model import TinyModel, make

DOUBLE = Problem(
    "mine/0", "mine", "Double x.", "call", ({"args": [1], "expected": 2},), entry_point="solve"
)


def problems(count: int) -> list[Problem]:
    return [replace(DOUBLE, problem_id=f"mine/{number}") for number in range(count)]


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("start")
    make(TinyModel(hidden=32, layers=1, vocabulary=300), ["def solve(x): return x"], folder)
    return folder


@pytest.fixture
def job(start: Path, tmp_path: Path) -> TrainingJob:
    shutil.copytree(start, tmp_path / "start")
    write_verl(problems(8), tmp_path / "train.parquet")
    write_verl(problems(2), tmp_path / "validation.parquet")
    return TrainingJob(
        folder=str(tmp_path / "job"),
        run_id="chain-0001",
        start=str(tmp_path / "start"),
        train=str(tmp_path / "train.parquet"),
        validation=str(tmp_path / "validation.parquet"),
        inputs={},
        training=Training(problems_per_step=8),
        reward=RewardConfig(),
        reward_hash="f" * 64,
        isolation="auto",
        seed=1,
    )


def test_a_valid_job_passes_and_nothing_is_written(job: TrainingJob) -> None:
    check(job)
    assert not job.path.exists()


def without_truth(folder: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(folder / "train.parquet")
    cells = table.column("reward_model").to_pylist()
    cells[3] = {"style": "rule", "ground_truth": None}
    place = table.column_names.index("reward_model")
    pq.write_table(
        table.set_column(place, "reward_model", pa.array(cells, table.schema.field(place).type)),
        folder / "train.parquet",
    )


def another_truth(folder: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    truth = '{"task": "essay", "question_id": "q", "answers": []}'
    rows = {
        "data_source": ["m"],
        "prompt": [[{"role": "user", "content": "?"}]],
        "reward_model": [{"ground_truth": truth}],
    }
    pq.write_table(pa.table(rows), folder / "train.parquet")


def gated(folder: Path) -> None:
    write_verl(
        [*problems(8), replace(DOUBLE, problem_id="HumanEval/3", source="HumanEval")],
        folder / "train.parquet",
    )


def unittests(folder: Path) -> None:
    tests = (
        {
            "source": "import unittest\nclass T(unittest.TestCase):\n"
            "    def test(self): self.assertEqual(solve(1), 2)\n"
        },
    )
    write_verl(
        [*problems(8), replace(DOUBLE, problem_id="mine/9", style="unittest", tests=tests)],
        folder / "train.parquet",
    )


def test_unittests_are_accepted_with_shared_trust(job: TrainingJob, tmp_path: Path) -> None:
    unittests(tmp_path)
    check(job.model_copy(update={"reward": RewardConfig(shared=True)}))


@pytest.mark.parametrize(
    ("spoil", "error"),
    [
        (without_truth, r"train\.parquet, row 3: .*ground_truth"),
        (unittests, r"train\.parquet, row 8: mine/9 .*reward\.shared: true"),
        (another_truth, r"train\.parquet, row 0: ground_truth .*essay"),
        (gated, r"train\.parquet, row 8: HumanEval/3 "),
        (
            lambda folder: write_verl(problems(5), folder / "train.parquet"),
            r"train\.parquet .*\b5\b.*\b8\b.*training\.problems_per_step",
        ),
        (lambda folder: (folder / "validation.parquet").write_text("no"), r"validation\.parquet "),
        (lambda folder: (folder / "train.parquet").unlink(), r"train\.parquet "),
    ],
)
def test_untrainable_data_is_refused_with_file_and_row(
    job: TrainingJob, tmp_path: Path, spoil: Callable[[Path], object], error: str
) -> None:
    spoil(tmp_path)
    with pytest.raises(CannotTrain, match=error) as caught:
        check(job)
    assert "\n" not in str(caught.value)
    assert not job.path.exists()


def test_prompts_that_do_not_fit_are_refused_with_the_shortest(job: TrainingJob) -> None:
    training = job.training.model_copy(update={"prompt_tokens": 4})
    with pytest.raises(CannotTrain, match=r"0 prompts have at most 4 tokens.*shortest has"):
        check(job.model_copy(update={"training": training}))


def test_a_chat_that_the_template_refuses_is_named(job: TrainingJob, tmp_path: Path) -> None:
    (tmp_path / "start" / "chat_template.jinja").write_text(
        "{% for m in messages %}{% if m.role == 'assistant' %}{{ raise_exception('no') }}"
        "{% endif %}{{ m.content }}{% endfor %}"
    )
    check(job)
    turns = [("user", "Write f."), ("assistant", "f = abs"), ("user", DOUBLE.statement)]
    extra = {TURNS: [{"role": role, "content": text} for role, text in turns]}
    write_verl([*problems(8), replace(DOUBLE, problem_id="mine/8", extra=extra)], Path(job.train))
    with pytest.raises(CannotTrain, match=r"train\.parquet.*a chat of user, assistant, user"):
        check(job)


def test_the_preflight_checks_the_start_model(job: TrainingJob, tmp_path: Path) -> None:
    (tmp_path / "start" / "tokenizer.json").unlink()
    with pytest.raises(UnfitStart, match=r"tokenizer\.json"):
        check(job)


def test_checkpoints_that_exceed_the_disk_are_refused(
    job: TrainingJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = shutil.disk_usage("/")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: whole._replace(free=1000))
    with pytest.raises(
        CannotTrain,
        match=r"0\.0 GiB .*[\d,]+ parameters .*training\.keep",
    ):
        check(job)


def test_an_engine_that_cannot_be_imported_is_refused_before_ray_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "vllm.py").write_text("raise ImportError('libcudart.so.13: cannot open it')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(CannotTrain, match=r"vllm: ImportError: libcudart.*ratchet doctor"):
        check_engine(Training(engine="vllm"))
    (tmp_path / "vllm.py").write_text("")
    check_engine(Training(engine="vllm"))
    check_engine(Training())
