"""Evaluate one checkpoint on one benchmark: generate, extract, judge, store.

In: a checkpoint folder, a benchmark, a sandbox. Out: a `Scorecard`, the same for the same weights
and seed except for measured times. The store decides whether a score exists already.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from evaluation.benchmarks.benchmark import Benchmark
from evaluation.generation.decoder import generate
from evaluation.judging.failure_kinds import fault
from evaluation.judging.quality import measured
from evaluation.judging.reports import NotJudged, reports
from evaluation.sampling import Answer, Prompt, Sampling
from evaluation.scorecard import Sample, Scorecard
from problems.dataset.rl_parquet import shown_test
from problems.schema import Problem
from sandbox.protocol import Report, Verdict
from sandbox.sandbox import Sandbox

# raised whenever the same completion could get another verdict: scores of two harness versions are
# not compared
HARNESS_VERSION = "1"

Progress = Callable[[str, int, int], None]  # stage ("generate" or "judge"), done, total


def evaluate(
    checkpoint: Path,
    checkpoint_name: str,
    checkpoint_hash: str,
    benchmark: Benchmark,
    sandbox: Sandbox,
    on_progress: Progress | None = None,
    kept: Path | None = None,
) -> Scorecard:
    """Return the scorecard. kept: a folder that caches completions, so that a killed evaluation
    resumes; without it all are generated now.

    Raises FileNotFoundError if the folder holds no model, and NotJudged if completions stay without
    a verdict.
    """
    started = time.perf_counter()
    prompts = [benchmark.prompt(problem) for problem in benchmark.problems]
    answers, before_s = _answers(checkpoint, prompts, benchmark.sampling, on_progress, kept)
    generated = time.perf_counter()
    samples, isolation = judge_answers(benchmark, answers, sandbox, on_progress)
    judged = time.perf_counter()
    references = {
        problem.problem_id: problem.solutions[0]
        for problem in benchmark.problems
        if problem.solutions
    }
    tokens = float(sum(answer.tokens for answer in answers))
    counted = {
        "generation_s": before_s + generated - started,
        "judging_s": judged - generated,
        "tokens": tokens,
    }
    return Scorecard(
        benchmark=benchmark.name,
        benchmark_version=benchmark.version,
        harness_version=HARNESS_VERSION,
        checkpoint=checkpoint_name,
        checkpoint_hash=checkpoint_hash,
        sampling=benchmark.sampling.model_dump(mode="json"),
        samples=samples,
        isolation=isolation,
        prompts={
            problem.problem_id: prompt[-1]["content"]
            for problem, prompt in zip(benchmark.problems, prompts, strict=True)
        },
        measured=counted | measured(samples, references),
    )


def _answers(
    checkpoint: Path,
    prompts: Sequence[Prompt],
    sampling: Sampling,
    on_progress: Progress | None,
    kept: Path | None,
) -> tuple[list[Answer], float]:
    """Return the completions, and the generation time in seconds of the cached ones."""
    from evaluation.generation.completion_sources import Folder, Told, draw

    def told(done: int, of: int) -> None:
        if on_progress:
            on_progress("generate", done, of)

    if kept is None:
        return generate(checkpoint, prompts, sampling, told), 0.0
    passed = Told()
    return draw(
        prompts, Folder(checkpoint, form="chat", engine="hf"), sampling, kept, told, passed
    ), passed.found_s


def judge_answers(
    benchmark: Benchmark,
    answers: Sequence[Answer],
    sandbox: Sandbox,
    on_progress: Progress | None = None,
) -> tuple[tuple[Sample, ...], str]:
    """Return samples in the order of the problems, `sampling.n` each, and the isolation level of
    the programs.
    """
    from rewards.extraction import extract_code

    n = benchmark.sampling.n
    asked = [
        (problem, k, answers[i * n + k])
        for i, problem in enumerate(benchmark.problems)
        for k in range(n)
    ]
    programs = [
        benchmark.program(problem, extract_code(answer.text) or "") for problem, _, answer in asked
    ]
    jobs = [
        problem.job(program, f"{problem.problem_id}#{k}")
        for (problem, k, _), program in zip(asked, programs, strict=True)
    ]
    found: dict[str, Report] = {}
    for report in reports({job.job_id: job for job in jobs}, sandbox):
        if report.absent:
            raise NotJudged(f"{report.job_id} needs {', '.join(report.absent)}: install it")
        found[report.job_id] = report
        if on_progress:
            on_progress("judge", len(found), len(jobs))
    samples = tuple(
        _sample(problem, k, answer, program, found[job.job_id])
        for (problem, k, answer), program, job in zip(asked, programs, jobs, strict=True)
    )
    return samples, ", ".join(sorted({report.isolation for report in found.values()}))


def _sample(problem: Problem, k: int, answer: Answer, program: str, report: Report) -> Sample:
    found = fault(report)
    return Sample(
        task_id=problem.problem_id,
        sample=k,
        answer=answer.text,
        program=program,
        verdict=report.verdict.value,
        passed=report.passed,
        total=report.total,
        cut=answer.cut,
        first_failed=_first_failed(problem, report),
        failed_test=found.test,
        raised=found.raised,
        tags=problem.tags,
    )


def _first_failed(problem: Problem, report: Report) -> str:
    shown = zip(problem.tests[: problem.visible_tests], report.tests, strict=False)
    return next(
        (shown_test(problem, test) for test, result in shown if result.verdict is not Verdict.AC),
        "",
    )
