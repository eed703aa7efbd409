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
from evaluation.judging.harness import Harness, Judged
from evaluation.judging.quality import measured
from evaluation.scorecard import Origin, Sample, Scorecard


@dataclass(frozen=True)
class Answers:
    """Completions of a file or a model, and their origin."""

    said: Sequence[Completion]
    origin: Origin
    name: str
    content: str = ""  # hash of the weights, if known
    sampling: Mapping[str, Any] = field(default_factory=dict)  # empty if unknown
    # Prompts by task, if they differ from the published ones.
    prompts: Mapping[str, str] = field(default_factory=dict)

    def judged_as(self, found: Harness) -> list[Completion]:
        """Return the completions to judge: a model's after extraction, a file's unchanged."""
        return (
            list(self.said)
            if self.origin.completions
            else [found.answered(found.tasks[each.task_id], each) for each in self.said]
        )


def version_of(found: Harness) -> str:
    """Return the sha256 over everything that decides a verdict of any task: another release, window
    or set of tests is another version.
    """
    return hash_data(
        [found.name, [[name, task.content] for name, task in sorted(found.tasks.items())]]
    )


def harness_of(found: Harness, origin: Origin) -> str:
    return f"{found.version} (as {found.upstream}{', sanitized' if origin.sanitized else ''})"


def scorecard(
    found: Harness,
    given: Answers,
    judged: Sequence[Judged],
    missing: Collection[str],
    judging_s: float,
) -> Scorecard:
    """Return the scorecard. Tasks that cannot be measured here have no sample, but a reason.
    judged: in the order of the completions.
    """
    rows = [(each, said) for each, said in zip(judged, given.said, strict=True) if each.measured]
    samples = tuple(_sample(found, each, said) for each, said in rows)
    asked = {
        task: text
        for task in {sample.task_id for sample in samples}
        if (text := given.prompts.get(task, found.tasks[task].prompt))
    }
    tokens, seconds = (
        sum(said.tokens or 0 for said in given.said),
        sum(said.seconds or 0.0 for said in given.said),
    )
    took = {"tokens": float(tokens), "generation_s": seconds, "judging_s": judging_s}
    return Scorecard(
        benchmark=found.name,
        benchmark_version=version_of(found),
        harness_version=harness_of(found, given.origin),
        checkpoint=given.name,
        checkpoint_hash=given.content,
        sampling=dict(given.sampling),
        samples=samples,
        isolation=", ".join(sorted({each.isolation for each, _ in rows} - {""})),
        source=found.source,
        release=found.release,
        partial=tuple(missing),
        unmeasured={each.task_id: each.detail for each in judged if not each.measured},
        prompts=dict(sorted(asked.items())),
        origin=given.origin.model_copy(
            update={"made_with": {"code": code_version()} | hardware() | package_versions()}
        ),
        measured={name: value for name, value in took.items() if value}
        | measured(samples, _references(found, samples)),
    )


def completions_of(card: Scorecard) -> list[Completion]:
    """Return the scorecard's completions in its order; none if they were left out of the file."""
    rows = card.samples if card.keeps_answers else ()
    return [
        Completion(each.task_id, each.sample, each.answer, each.whole, cut=each.cut)
        for each in rows
    ]


def _sample(found: Harness, each: Judged, said: Completion) -> Sample:
    return Sample(
        task_id=each.task_id,
        sample=each.sample,
        answer=said.text,
        program=each.program,
        verdict=each.verdict,
        cut=each.cut,
        first_failed=found.shown(found.tasks[each.task_id], each.failed_test),
        failed_test=each.failed_test,
        raised=each.raised,
        sets={name: passed is True for name, passed in each.passed.items()},
        whole=said.whole,
        detail=each.detail,
    )


def _references(found: Harness, samples: Sequence[Sample]) -> dict[str, str]:
    return {
        sample.task_id: found.tasks[sample.task_id].canonical
        for sample in samples
        if sample.verdict == "AC"
    }
