"""Training and evaluation judge the same completions with the same verdicts, task by task."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pyarrow.parquet as pq
import pytest

from evaluation.benchmarks import from_problems, validation
from evaluation.benchmarks.validation_parquet import write_validation
from evaluation.sampling import CompletionOutput, Sampling
from problems.embedded.compositional import generate
from problems.embedded.settings import FamilyConfig
from rewards.config import RewardConfig
from rewards.scorer import Scorer
from sandbox.sandbox import Sandbox, SandboxConfig
from tests.evaluation.judging import judge_completions
from verl_jobs.trainer.reward_manager import as_verl

COMPLETIONS = (
    "Here it is.\n```python\n{}\n```\nIt works.",
    "{}",
    "```\n{}\n```",
    "```python\ndef solve(x):\n    return None\n```\nNo, rather:\n```python\n{}\n```",
    "```python\n{}\n```\nor\n```python\ndef solve(x):\n    return 'no'\n```",
    "```python\n{}",  # never closed: truncated
    "```python\nimport sys\nsys.exit(0)\n{}\n```",
    "```python\ndef solve(*x):\n    raise KeyError(x)\n# {}\n```",
    "```python\ndef solve(*x):\n    while True: pass\n# {}\n```",
    "I do not know. {}",
    "```python\n```{}",
    "```python\nclass Everything:\n    def __eq__(self, other): return True\n"
    "def solve(*x): return Everything()\n```",
)


@pytest.mark.slow
def test_training_and_evaluation_give_a_completion_the_same_verdict(tmp_path: Path) -> None:
    benchmark = validation(
        generate(FamilyConfig(demonstrations=1, train=1, validation=2 * len(COMPLETIONS)))
    )
    write_validation(benchmark, tmp_path / "validation.parquet")
    rows = pq.read_table(tmp_path / "validation.parquet").to_pylist()
    assert [row["extra_info"]["problem_id"] for row in rows] == [
        problem.problem_id for problem in benchmark.problems
    ]
    assert [row["prompt"] for row in rows] == [
        benchmark.prompt(problem) for problem in benchmark.problems
    ]
    completions = [
        COMPLETIONS[at % len(COMPLETIONS)].replace("{}", problem.solutions[0])
        for at, problem in enumerate(benchmark.problems)
    ]
    confined = SandboxConfig(workers=2)
    with Sandbox(confined) as sandbox:
        samples, _ = judge_completions(
            benchmark, [CompletionOutput(text, 9, False) for text in completions], sandbox
        )
    scorer = Scorer(RewardConfig(), confined)
    try:
        scores = scorer.score(
            [
                (row["reward_model"]["ground_truth"], text)
                for row, text in zip(rows, completions, strict=True)
            ]
        )
    finally:
        scorer.sandbox.close()
    evaluated = [
        (sample.task_id, sample.verdict, sample.passed, sample.total) for sample in samples
    ]
    trained = [
        (row["extra_info"]["problem_id"], str(s.verdict), s.passed, s.total)
        for row, s in zip(rows, scores, strict=True)
    ]
    assert evaluated == trained
    assert len({verdict for _, verdict, *_ in evaluated}) >= 4  # the test covers several verdicts
    assert fmean(as_verl(score)["acc"] for score in scores) == fmean(
        sample.verdict == "AC" for sample in samples
    )


def test_a_benchmark_with_another_prompt_format_is_refused_for_validation(tmp_path: Path) -> None:
    problems = generate(FamilyConfig(demonstrations=1, train=1, validation=2))
    benchmark = from_problems("mine", problems, Sampling())
    with pytest.raises(ValueError, match="whole programs"):
        write_validation(replace(benchmark, completes=True), tmp_path / "v.parquet")
    with pytest.raises(ValueError, match="no stop word"):
        write_validation(replace(benchmark, sampling=Sampling(stop=("x",))), tmp_path / "v.parquet")
