"""Run a scorecard of `ratchet evaluate --benchmark` again: its own completions through the sandbox,
without cached verdicts.

In: the scorecard, the benchmark's file. Out: another scorecard. Completions that were left out are
read again from their file, or from the model.
"""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from cli.evaluate_benchmark import drawn_by, judge_all
from evaluation.benchmarks.published import Opened
from evaluation.benchmarks.registry import opened
from evaluation.completions import read
from evaluation.judging.harness import Harness, Verdicts, check
from evaluation.judging.scoring import Answers, completions_of, scorecard, version_of
from evaluation.sampling import Sampling
from evaluation.scorecard import Origin, Scorecard
from resources.home import Home, NotReady


def judged_again(card: Scorecard, origin: Origin, data: Path | None, errors: Console) -> Scorecard:
    """Judge again. Raises ProblemError, FileNotFoundError, NotJudged, and NotReady if the tasks or
    the weights have changed.
    """
    home = Home.from_environment().path
    at = opened(origin.benchmark, data or Path(origin.data), home)
    found = at.harness(home)
    if (here := version_of(found)) != card.benchmark_version:
        raise NotReady(
            f"{at.data} holds another version of {card.benchmark} ({here[:12]}, scored was "
            f"{card.benchmark_version[:12]}, {card.release}): "
            "give the file that was scored with --data"
        )
    given = _answers(card, origin, at, found, home, errors)
    check(found, given.said, partial=True)
    judged, seconds = judge_all(found, given, Verdicts(None), errors)
    if not any(each.measured for each in judged):
        raise NotReady(f"no task of {card.benchmark} can be measured here: {judged[0].detail}")
    again = scorecard(found, given, judged, card.partial, seconds)
    return again.model_copy(
        update={
            "unmeasured": again.unmeasured
            | {task: why for task, why in card.unmeasured.items() if task not in again.first}
        }
    )


def _answers(
    card: Scorecard, origin: Origin, at: Opened, found: Harness, home: Path, errors: Console
) -> Answers:
    kept = completions_of(card)
    if not kept and origin.completions:
        kept = [
            found.named(each)
            for each in read(Path(origin.completions), found.prefer, [] if card.partial else None)
        ]
    if kept:
        return Answers(
            kept, origin, card.checkpoint, card.checkpoint_hash, card.sampling, card.prompts
        )
    given, _ = drawn_by(
        origin, at.benchmark(), found, Sampling.model_validate(card.sampling), home, errors
    )
    if card.checkpoint_hash not in ("", given.content):
        raise NotReady(
            f"{origin.model} has other weights now ({given.content[:12]}, scored was "
            f"{card.checkpoint_hash[:12]}): put those back"
        )
    return given
