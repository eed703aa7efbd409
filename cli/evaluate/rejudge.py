"""Judge the completions of a scorecard again, without cached verdicts; used by `ratchet reproduce`.

In: the scorecard and the benchmark's file. Out: a new scorecard. Completions that the scorecard
does not hold are read again from their file, or generated again.
"""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from cli.evaluate.completions import generate_submission
from cli.evaluate.progress import judge_all
from evaluation.benchmarks.benchmark import Benchmark
from evaluation.benchmarks.registry import opened
from evaluation.completions import read
from evaluation.judging.judge import Verdicts, check
from evaluation.judging.scoring import Submission, completions_of, scorecard, version_of
from evaluation.sampling import Sampling
from evaluation.scorecard import Origin, Scorecard
from resources.home import NotReady


def judge_again(
    card: Scorecard, origin: Origin, data: Path | None, home: Path, errors: Console
) -> Scorecard:
    """Return a scorecard with new verdicts.

    Raises ProblemError, FileNotFoundError, NotJudged, and NotReady if the tasks or the weights have
    changed.
    """
    at = opened(origin.benchmark, data or Path(origin.data), home)
    benchmark = at.benchmark()
    harness = benchmark.harness
    if (version := version_of(harness)) != card.benchmark_version:
        raise NotReady(
            f"{at.place} holds version {version[:12]} of {card.benchmark}; the scorecard is for "
            f"version {card.benchmark_version[:12]} ({card.release}): give that file with --data"
        )
    submission = _submission(card, origin, benchmark, home, errors)
    check(harness, submission.completions, partial=True)
    judged, seconds = judge_all(harness, submission, Verdicts(None), errors, home)
    if not any(each.measured for each in judged):
        raise NotReady(
            f"no task of {card.benchmark} can be measured on this machine: {judged[0].detail}"
        )
    again = scorecard(harness, submission, judged, card.partial, seconds)
    still_unmeasured = {
        task: why for task, why in card.unmeasured.items() if task not in again.first
    }
    return again.model_copy(update={"unmeasured": again.unmeasured | still_unmeasured})


def _submission(
    card: Scorecard, origin: Origin, benchmark: Benchmark, home: Path, errors: Console
) -> Submission:
    """Return the scorecard's completions, else those of their file, else generated ones."""
    harness, completions = benchmark.harness, completions_of(card)
    if not completions and origin.completions:
        bad_lines: list[str] | None = [] if card.partial else None
        completions = [
            harness.named(each)
            for each in read(Path(origin.completions), harness.prefer, bad_lines)
        ]
    if completions:
        return Submission(
            completions,
            origin,
            card.checkpoint,
            content_hash=card.checkpoint_hash,
            sampling=card.sampling,
            prompts=card.prompts,
            weights=card.weights,
        )
    sampling = Sampling.model_validate(card.sampling)
    submission, _ = generate_submission(origin, benchmark, sampling, home, errors)
    if card.checkpoint_hash not in ("", submission.content_hash):
        raise NotReady(
            f"the weights of {origin.model} are {submission.content_hash[:12]}; the scorecard is "
            f"for {card.checkpoint_hash[:12]}: put those back"
        )
    return submission
