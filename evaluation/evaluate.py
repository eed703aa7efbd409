"""Evaluate one checkpoint on one benchmark: generate, extract, judge, store.

In: a checkpoint folder, a benchmark, a sandbox. Out: a `Scorecard`, the same for the same weights
and seed except for measured times. The store decides whether a score exists already.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from evaluation.benchmarks.benchmark import Benchmark
from evaluation.generation.completion_sources import (
    FolderSource,
    GenerationReport,
    Source,
    generate_completions,
)
from evaluation.judging.judge import CompletionResult, Verdicts, judge
from evaluation.judging.references import leave_out_unfit
from evaluation.judging.reports import NotMeasurable
from evaluation.judging.scoring import Submission, scorecard
from evaluation.sampling import Prompt
from evaluation.scorecard import Scorecard
from sandbox.sandbox import Runs

STEPS = ("references", "generate", "judge")
Progress = Callable[[str, int, int], None]  # step, done, total


def evaluate(
    checkpoint: Path,
    checkpoint_name: str,
    checkpoint_hash: str,
    benchmark: Benchmark,
    sandbox: Runs,
    *,
    on_progress: Progress = lambda stage, done, total: None,
    cache: Path | None = None,
    references: Path | None = None,
    source: Source | None = None,
) -> Scorecard:
    """Return the scorecard. source: of the checkpoint's completions; by default transformers in
    this process. cache: a folder for completions, so that a killed evaluation resumes;
    without it all are generated now. references: a folder that keeps which tasks of a published
    benchmark cannot be measured; the score is over the others and names them.

    Raises FileNotFoundError if the folder holds no model, NotMeasurable if no task can be measured,
    and NotJudged if completions stay without a verdict.
    """
    version = benchmark.version
    benchmark, unfit = fit(benchmark, sandbox, references, on_progress)
    started, generation = time.perf_counter(), GenerationReport()
    completions = generate_completions(
        benchmark,
        source or FolderSource(checkpoint, form=benchmark.form, engine="hf"),
        benchmark.sampling,
        cache,
        lambda done, total: on_progress("generate", done, total),
        generation,
    )
    generated = time.perf_counter()
    prompts = {
        benchmark.task_id(problem): _last_turn(benchmark.model_prompt(problem))
        for problem in benchmark.problems
    }
    submission = Submission(
        completions=completions,
        origin=None,
        name=checkpoint_name,
        content_hash=checkpoint_hash,
        sampling=benchmark.sampling.model_dump(mode="json"),
        prompts=prompts,
        weights=str(generation.identity["weights"]),
        benchmark_version=version,
    )
    card = score(benchmark, submission, sandbox, on_progress)
    times = {"generation_s": generation.cached_s + generated - started}
    return card.model_copy(update={"measured": card.measured | times, "unmeasured": unfit})


def fit(
    benchmark: Benchmark, sandbox: Runs, references: Path | None, on_progress: Progress
) -> tuple[Benchmark, dict[str, str]]:
    """Return the benchmark without the tasks that cannot be measured, and these with the reason.

    Only a published harness is asked: the references of other problems ran when they were verified.
    """
    if benchmark.published_harness is None:
        return benchmark, {}
    tasks = {benchmark.task_id(problem): problem for problem in benchmark.problems}
    unfit = leave_out_unfit(
        benchmark.harness,
        tasks,
        lambda: nullcontext(sandbox),
        references,
        lambda done, total: on_progress("references", done, total),
    )
    if len(unfit) == len(tasks):
        first, why = next(iter(unfit.items()))
        raise NotMeasurable(f"none of its {len(tasks)} tasks can be measured: {first} {why}")
    kept = tuple(problem for task, problem in tasks.items() if task not in unfit)
    return replace(benchmark, problems=kept), unfit


def score(
    benchmark: Benchmark,
    submission: Submission,
    sandbox: Runs,
    on_progress: Progress = lambda stage, done, total: None,
) -> Scorecard:
    """Judge a submission by the benchmark's harness. Raises NotMeasurable if a task cannot be
    judged on this machine: a score over the other tasks would be another score.
    """
    started = time.perf_counter()

    def count(results: Sequence[CompletionResult | None]) -> None:
        on_progress("judge", sum(each is not None for each in results), len(results))

    results = judge(
        benchmark.harness,
        submission.extracted(benchmark.harness),
        lambda: nullcontext(sandbox),
        Verdicts(None),
        on_results=count,
    )
    if absent := [each for each in results if not each.measured]:
        raise NotMeasurable(
            f"{len({each.task_id for each in absent})} of {len(benchmark.problems)} tasks cannot "
            f"be measured here: {absent[0].task_id} {absent[0].detail}"
        )
    return scorecard(benchmark.harness, submission, results, (), time.perf_counter() - started)


def _last_turn(prompt: Prompt) -> str:
    return prompt if isinstance(prompt, str) else prompt[-1]["content"]
