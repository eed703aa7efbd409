"""Run a score again from its manifest and list every verdict that differs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress

from artifacts.manifest import code_version, hardware, package_versions
from artifacts.passport import ManifestIndex
from artifacts.store import Artifact, Store
from cli.options import (
    ProfileOption,
)
from cli.scorecards import at_path
from evaluation.benchmark_settings import BenchmarkSettings
from evaluation.benchmarks import NotMeasured, heldout, validation
from evaluation.benchmarks.benchmark import Benchmark
from evaluation.benchmarks.registry import measured, published
from evaluation.evaluate import evaluate
from evaluation.promotion.rate import Rate
from evaluation.reports.figures import Figures
from evaluation.sampling import Sampling
from evaluation.scorecard import Sample, Scorecard
from problems.schema import read_parquet
from problems.sources.compositional import FamilyConfig
from problems.sources.heldout import heldout_tasks, older_draw
from resources.config.profile import Profile
from resources.home import Home, NotReady
from resources.run_record import records
from resources.settings import Settings
from sandbox.sandbox import Sandbox

GROUP = "Evaluate"


SHOWN = 40  # differences that are printed; all are counted


class NotReproducible(NotReady):
    """Something that the score was made from is missing; the message names it and the fix."""


def reproduce(
    score: str, out: Path | None, settings: Settings, console: Console, data: Path | None = None
) -> int:
    """Reproduce a score. Exits 0 if every verdict is the same, 1 if one differs. Raises
    NotReproducible if it cannot be run again.

    score: a name or hash in the store, or the path of a scorecard of `ratchet evaluate
    --benchmark`;
    data: where that benchmark's file is now.
    """
    if scorecards := at_path(score):
        return _judged_again(score, scorecards, data, out, settings.home, console)
    home, loaded = settings.home, settings.profile
    store = settings.store
    index = ManifestIndex.of(store)
    artifact = _score(score, store, index)
    card = Scorecard.stored(artifact)
    checkpoint = _checkpoint(card, store, index, settings)
    benchmark = _benchmark(card, artifact, store, index, home, loaded)
    with Sandbox(loaded.sandbox) as sandbox, Progress(console=console, transient=True) as bar:
        tasks = {stage: bar.add_task(stage, total=None) for stage in ("generate", "judge")}
        again = evaluate(
            checkpoint, card.checkpoint, card.checkpoint_hash, benchmark, sandbox,
            lambda stage, done, of: bar.update(tasks[stage], completed=done, total=of),
        )  # fmt: skip
    if out:
        again.write(out)
    then = (
        {"code": artifact.manifest.code_version}
        | artifact.manifest.hardware
        | artifact.manifest.packages
    )
    return _tell(artifact.manifest.name, then, again.harness_version, card, again, console)


def _judged_again(
    named: str,
    scorecards: Sequence[Scorecard],
    data: Path | None,
    out: Path | None,
    home: Home,
    console: Console,
) -> int:
    from cli.rejudge import judge_again

    if len(scorecards) > 1:
        raise NotReproducible(
            f"{named} holds the scores of several benchmarks, "
            f"{', '.join(card.benchmark for card in scorecards)}: give one of its files"
        )
    [card] = scorecards
    if card.tool:
        raise NotReproducible(
            f"{named} was written by {card.tool}: judge its programs with `ratchet evaluate "
            "--benchmark NAME --completions FILE`"
        )
    if card.origin is None:
        raise NotReproducible(
            f"{named} is a checkpoint's score, whose passport lies in the store: give its "
            f"name, such as {card.checkpoint}--heldout"
        )
    again = judge_again(card, card.origin, data, home.path, Console(stderr=True))
    if out:
        again.write(out, Figures.of(again).as_json())
    return _tell(named, card.origin.made_with, again.harness_version, card, again, console)


def differences(before: Scorecard, after: Scorecard) -> list[str]:
    """A line for each answer whose verdict is another one, or that only one card has."""
    old, new = ({(s.task_id, s.sample): s for s in card.samples} for card in (before, after))
    lines = []
    for key in sorted(old.keys() | new.keys()):
        name = f"{key[0]}#{key[1]}"
        if key not in old or key not in new:
            lines.append(f"{name}: only in the {'new' if key in new else 'recorded'} score")
        elif (old[key].verdict, old[key].sets) != (new[key].verdict, new[key].sets):
            why = (
                "the same answer"
                if old[key].completion == new[key].completion
                else "another answer"
                if before.keeps_completions
                else "the answer was left out"
            )
            lines.append(f"{name}: {_said(old[key])} was recorded, {_said(new[key])} now; {why}")
    return lines


def _said(sample: Sample) -> str:
    """Return the verdict, with the sets that pass if there are several: two failures may differ in
    them.
    """
    passed = [name for name, passes in sample.sets.items() if passes]
    return (
        f"{sample.verdict} ({', '.join(passed)} pass)"
        if len(sample.sets) > 1 and passed
        else sample.verdict
    )


def passport_differences(
    made_with: Mapping[str, Any], card: Scorecard, harness: str, isolation: str
) -> list[str]:
    """Return what has changed since the score was made: code, packages, machine, harness,
    isolation.
    """
    then = {"harness": card.harness_version, "isolation": card.isolation or "not noted"} | dict(
        made_with
    )
    now = (
        {"harness": harness, "isolation": isolation, "code": code_version()}
        | hardware()
        | package_versions()
    )
    return [
        f"{name}: {then.get(name, 'absent')} then, {now.get(name, 'absent')} now"
        for name in then | now
        if then.get(name) != now.get(name)
    ]


def _tell(
    name: str,
    made_with: Mapping[str, Any],
    harness: str,
    card: Scorecard,
    again: Scorecard,
    console: Console,
) -> int:
    changed_verdicts, texts = (
        differences(card, again),
        {(s.task_id, s.sample): s.completion for s in again.samples},
    )
    worded = sum(texts.get((s.task_id, s.sample)) != s.completion for s in card.samples)
    state = (
        "the same verdicts"
        if not changed_verdicts
        else f"{len(changed_verdicts)} of {len(card.samples)} verdicts differ"
    )
    wording = (
        f"{worded} answers are worded otherwise"
        if card.keeps_completions
        else "the recorded answers were left out"
    )
    console.print(f"{name}: {state}; {wording}.", style="bold", soft_wrap=True, highlight=False)
    before, now = (Rate.of(each).share for each in (card, again))
    console.print(
        f"pass@1 {100 * before:.2f} % recorded, {100 * now:.2f} % now, {len(card.first)} tasks",
        highlight=False,
    )
    for line in changed_verdicts[:SHOWN]:
        console.print(f"- {line}", soft_wrap=True, highlight=False)
    if len(changed_verdicts) > SHOWN:
        console.print(
            f"and {len(changed_verdicts) - SHOWN} more: --out FILE writes the new scorecard"
        )
    changed = passport_differences(made_with, card, harness, again.isolation)
    console.print("Of the passport differs:" if changed else "Nothing of the passport differs.")
    for line in changed:
        console.print(f"- {line}", soft_wrap=True, highlight=False)
    return 1 if changed_verdicts else 0


def _score(name: str, store: Store, index: ManifestIndex) -> Artifact:
    """By its name, the newest of that, or by the beginning of its hash."""
    scores = [
        m
        for found in index.by_content.values()
        for m in found
        if m.kind == "scores" and "--" in m.name
    ]
    meant = [
        m for m in scores if m.name == name or (len(name) >= 6 and m.content_hash.startswith(name))
    ]
    if not meant or (found := store.find("scores", meant[-1].name, meant[-1].key)) is None:
        score_names = (
            ", ".join(sorted({m.name for m in scores}))
            or "none yet: `ratchet evaluate CHECKPOINT` makes some"
        )
        raise NotReproducible(f"no score {name!r}: there are {score_names}")
    return found


def _checkpoint(card: Scorecard, store: Store, index: ManifestIndex, settings: Settings) -> Path:
    """The folder with the very weights that were scored."""
    for manifest in index.by_content.get(card.checkpoint_hash, []):
        if manifest.kind == "checkpoints" and (
            artifact := store.find("checkpoints", manifest.name, manifest.key)
        ):
            store.verify(artifact)
            return artifact.path
    path = next(
        (
            Path(e.path)
            for e in settings.ledger.history()
            if e.checkpoint_hash == card.checkpoint_hash
        ),
        None,
    )
    if path is None or not path.is_dir():
        raise NotReproducible(
            f"the weights {card.checkpoint} ({card.checkpoint_hash[:12]}) are nowhere any "
            "more: put their folder back"
        )
    return path


def _benchmark(
    card: Scorecard,
    artifact: Artifact,
    store: Store,
    index: ManifestIndex,
    home: Home,
    profile: Profile,
) -> Benchmark:
    """The tasks with the hash that the card names."""
    sampling = Sampling.model_validate(card.sampling)
    others = []
    for candidate in _candidates(card, artifact, store, index, home, profile):
        if isinstance(candidate, NotMeasured):
            raise NotReproducible(f"{card.benchmark}: {candidate.reason}")
        if candidate.version == card.benchmark_version:
            return replace(candidate, sampling=sampling)
        others.append(candidate.version[:12])
    there = f"here are {', '.join(dict.fromkeys(others))}" if others else "no other either"
    raise NotReproducible(
        f"the tasks of {card.benchmark}, version {card.benchmark_version[:12]}, are not here "
        f"({there}): add the file that was scored"
    )


def _candidates(
    card: Scorecard,
    artifact: Artifact,
    store: Store,
    index: ManifestIndex,
    home: Home,
    profile: Profile,
) -> Iterator[Benchmark | NotMeasured]:
    manifests = [manifest for found in index.by_content.values() for manifest in found]
    if card.benchmark == "heldout":
        draw_numbers = [
            int(m.facts["draw"])
            for m in manifests
            if "draw" in m.facts and artifact.content_hash in m.inputs.values()
        ]
        known = FamilyConfig.model_fields
        configs = [
            {key: value for key, value in m.config.items() if key in known}
            for m in manifests
            if m.name == "raw_problems"
        ]
        families = dict.fromkeys(
            [
                *(json.dumps(config, sort_keys=True) for config in configs),
                profile.family.model_dump_json(),
            ]
        )
        numbers = [*draw_numbers, *(record.number for record in records(home.runs))]
        for family in families:
            yield from _heldout(card, FamilyConfig.model_validate_json(family), numbers)
    elif card.benchmark == "validation":
        for version in store.versions("datasets", "clean_problems")[::-1]:
            clean = read_parquet(version.path / "problems.parquet")
            yield validation(
                [
                    problem
                    for problem in clean
                    if problem.split == "validation" and problem.source == "embedded"
                ]
            )
    elif settings := _settings_of(card, profile):
        for prompt in ("chat", "upstream"):
            yield measured(
                settings.model_copy(update={"prompt": prompt}), home.path, profile.evaluation.hub
            )


def _heldout(card: Scorecard, family: FamilyConfig, numbers: list[int]) -> Iterator[Benchmark]:
    """Yield the tasks that the card's ids number, else each of an older home's draws."""
    places = [task.split("/")[2:] for task in card.solved]
    if all(len(place) == 2 for place in places):
        first = min(int(number) for _, number in places)
        yield heldout(heldout_tasks(family, first, len(places)))
        return
    for number in dict.fromkeys(numbers):
        if tasks := older_draw(family, number, len(places)):
            yield heldout(tasks)


def _settings_of(card: Scorecard, profile: Profile) -> BenchmarkSettings | None:
    """Return the profile's settings of the card's benchmark, else those of the published one."""
    if settings := profile.evaluation.settings_of(card.benchmark):
        return settings
    known = card.benchmark.partition("@")[0] in published()
    return BenchmarkSettings(name=card.benchmark) if known else None


def command(
    score: Annotated[
        str,
        typer.Argument(
            help=(
                "A score such as chain-0001--heldout, the beginning of its hash, or a scorecard's "
                "path."
            )
        ),
    ],
    data: Annotated[
        Path | None,
        typer.Option(help="The benchmark's file of a scorecard, where it lies elsewhere now."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write the new scorecard to this file.")] = None,
    profile: ProfileOption = None,
) -> None:
    """Run a score again from its manifest and list every verdict that differs.

    Exits 0 if all verdicts are equal, else 1. A score of the store is generated and judged again.
    For a scorecard of `ratchet evaluate --benchmark`, the completions in it are judged again; if it
    holds none, they are read or generated again.
    """
    raise typer.Exit(reproduce(score, out, Settings.read(profile), Console(), data))
