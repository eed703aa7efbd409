"""Judge given completions as those of a model."""

from __future__ import annotations

from collections.abc import Sequence

from evaluation.benchmarks import Benchmark
from evaluation.evaluate import score
from evaluation.generation.completion_sources import task_completions
from evaluation.judging.scoring import Submission
from evaluation.sampling import CompletionOutput
from evaluation.scorecard import ScoredSample
from sandbox.sandbox import Runs


def judge_completions(
    benchmark: Benchmark, outputs: Sequence[CompletionOutput], sandbox: Runs
) -> tuple[tuple[ScoredSample, ...], str]:
    """Return the samples, in the order of the problems, and their isolation level."""
    submission = Submission(
        task_completions(benchmark, outputs, benchmark.sampling.n), None, "model"
    )
    card = score(benchmark, submission, sandbox)
    return card.samples, card.isolation
