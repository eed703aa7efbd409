"""Run a scorecard of `ratchet evaluate --benchmark` again: its own completions through the sandbox,
without cached verdicts.

In: the scorecard, the benchmark's file. Out: another scorecard. Completions that were left out are
read again from their file, or from the model.
"""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from cli.evaluate_benchmark import generate_submission, judge_all
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
    """Judge again. Raises ProblemError, FileNotFoundError, NotJudged, and NotReady if the tasks or
    the weights have changed.
    """
    at = opened(origin.benchmark, data or Path(origin.data), home)
    benchmark = at.benchmark()
    harness = benchmark.harness
    if (here := version_of(harness)) != card.benchmark_version:
        raise NotReady(
            f"{at.place} holds another version of {card.benchmark} ({here[:12]}, scored was "
            f"{card.benchmark_version[:12]}, {card.release}): "
            "give the file that was scored with --data"
        )
    submission = _submission(card, origin, benchmark, home, errors)
    check(harness, submission.completions, partial=True)
    judged, seconds = judge_all(harness, submission, Verdicts(None), errors)
    if not any(each.measured for each in judged):
        raise NotReady(f"no task of {card.benchmark} can be measured here: {judged[0].detail}")
    again = scorecard(harness, submission, judged, card.partial, seconds)
    return again.model_copy(
        update={
            "unmeasured": again.unmeasured
            | {task: why for task, why in card.unmeasured.items() if task not in again.first}
        }
    )


def _submission(
    card: Scorecard, origin: Origin, benchmark: Benchmark, home: Path, errors: Console
) -> Submission:
    harness, completions = benchmark.harness, completions_of(card)
    if not completions and origin.completions:
        broken: list[str] | None = [] if card.partial else None
        completions = [
            harness.named(each) for each in read(Path(origin.completions), harness.prefer, broken)
        ]
    if completions:
        return Submission(
            completions, origin, card.checkpoint, card.checkpoint_hash, card.sampling, card.prompts
        )
    submission, _ = generate_submission(
        origin, benchmark, Sampling.model_validate(card.sampling), home, errors
    )
    if card.checkpoint_hash not in ("", submission.content_hash):
        raise NotReady(
            f"{origin.model} has other weights now ({submission.content_hash[:12]}, scored was "
            f"{card.checkpoint_hash[:12]}): put those back"
        )
    return submission
