"""Turn judged completions into a scorecard, and a scorecard's completions back into completions.

In: a harness, completions with their origin, verdicts. Out: a `Scorecard` that holds everything
needed to judge or generate again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from artifacts.hashing import hash_data
from artifacts.manifest import code_version, hardware, package_versions
from evaluation.completions import Completion
from evaluation.judging.harness import Harness
from evaluation.judging.judge import CompletionResult
from evaluation.judging.quality import measured
from evaluation.scorecard import Origin, Scorecard, ScoredSample


@dataclass(frozen=True)
class Submission:
    """Completions of a file or a model, and their origin."""

    completions: Sequence[Completion]
    origin: Origin | None  # None: a checkpoint of the home, whose passport has its origin
    name: str
    content_hash: str = ""  # of the checkpoint, if known
    sampling: Mapping[str, Any] = field(default_factory=dict)  # empty if unknown
    # Prompts by task, if they differ from the published ones.
    prompts: Mapping[str, str] = field(default_factory=dict)
    weights: str = ""  # hash of the tensors alone (artifacts/tensors.py), if known
    benchmark_version: str = ""  # of tasks and prompts; empty if the prompts are unknown

    @property
    def sanitized(self) -> bool:
        return self.origin is not None and self.origin.sanitized

    def extracted(self, harness: Harness) -> list[Completion]:
        """Return the completions to judge: a model's after extraction, a file's unchanged."""
        return (
            list(self.completions)
            if self.origin and self.origin.completions
            else [harness.extracted(harness.tasks[each.task_id], each) for each in self.completions]
        )


def version_of(harness: Harness) -> str:
    """Return the sha256 over everything that decides a verdict of any task: another release, window
    or set of tests is another version.
    """
    return hash_data(
        [harness.name, [[name, task.content] for name, task in sorted(harness.tasks.items())]]
    )


def harness_version(harness: Harness, sanitized: bool = False) -> str:
    """Return the harness's version and whose verdicts it gives; without upstream, its version."""
    if not harness.upstream:
        return harness.version
    return f"{harness.version} (as {harness.upstream}{', sanitized' if sanitized else ''})"


def scorecard(
    harness: Harness,
    submission: Submission,
    results: Sequence[CompletionResult],
    missing: Collection[str],
    judging_s: float,
) -> Scorecard:
    """Return the scorecard. Tasks that cannot be measured here have no sample, but a reason.
    results: in the order of the completions.
    """
    completions = submission.completions
    rows = [
        (each, completion)
        for each, completion in zip(results, completions, strict=True)
        if each.measured
    ]
    samples = tuple(_sample(harness, each, completion) for each, completion in rows)
    prompts = {
        task: text
        for task in {sample.task_id for sample in samples}
        if (text := submission.prompts.get(task, harness.tasks[task].prompt))
    }
    times = {
        "tokens": float(sum(completion.tokens or 0 for completion in completions)),
        "generation_s": sum(completion.seconds or 0.0 for completion in completions),
        "judging_s": judging_s,
    }
    return Scorecard(
        benchmark=harness.name,
        benchmark_version=submission.benchmark_version or version_of(harness),
        harness_version=harness_version(harness, submission.sanitized),
        checkpoint=submission.name,
        checkpoint_hash=submission.content_hash,
        weights=submission.weights,
        sampling=dict(submission.sampling),
        samples=samples,
        isolation=", ".join(sorted({each.isolation for each, _ in rows} - {""})),
        source=harness.source,
        release=harness.release,
        partial=tuple(missing),
        unmeasured={each.task_id: each.detail for each in results if not each.measured},
        prompts=dict(sorted(prompts.items())),
        origin=_stamped(submission.origin),
        measured={name: value for name, value in times.items() if value}
        | measured(samples, _references(harness, samples)),
    )


def _stamped(origin: Origin | None) -> Origin | None:
    if origin is None:
        return None
    versions = {"code": code_version()} | hardware() | package_versions()
    return origin.model_copy(update={"made_with": versions})


def completions_of(card: Scorecard) -> list[Completion]:
    """Return the scorecard's completions in its order; none if they were left out of the file."""
    rows = card.samples if card.keeps_completions else ()
    return [
        Completion(each.task_id, each.sample, each.completion, each.whole, cut=each.cut)
        for each in rows
    ]


def _sample(harness: Harness, each: CompletionResult, completion: Completion) -> ScoredSample:
    return ScoredSample(
        task_id=each.task_id,
        sample=each.sample,
        completion=completion.text,
        program=each.program,
        verdict=each.verdict,
        passed=each.accepted,
        total=each.total,
        cut=each.cut,
        first_failed=harness.visible_test(harness.tasks[each.task_id], each.failed_test),
        failed_test=each.failed_test,
        raised=each.raised,
        tags=harness.tags(harness.tasks[each.task_id]),
        cluster=harness.cluster(harness.tasks[each.task_id]),
        sets={name: passed is True for name, passed in each.passed.items() if name},
        whole=completion.whole,
        detail=each.detail,
    )


def _references(harness: Harness, samples: Sequence[ScoredSample]) -> dict[str, str]:
    return {
        sample.task_id: harness.tasks[sample.task_id].canonical
        for sample in samples
        if sample.verdict == "AC"
    }
