"""Run a score again from its manifest and list every verdict that differs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress

from artifacts.manifest import code_version, hardware, package_versions
from artifacts.passport import ManifestIndex
from artifacts.pull import holds, pull_champion
from artifacts.store import Artifact, Store
from cli.app.commands import Command
from cli.app.options import ProfileOption
from cli.display.screen import screen
from cli.lookup.scorecards import at_path
from cli.lookup.scored_benchmark import NotReproducible, scored_benchmark
from cli.provenance import names_manifest
from evaluation.evaluate import STEPS, evaluate
from evaluation.promotion.rate import Rate
from evaluation.reports.figures import Figures
from evaluation.scorecard import Scorecard, ScoredSample
from pipelines.watch.text import print_text
from resources.home import Home
from resources.settings import Settings
from sandbox.sandbox import Sandbox

MAX_DIFFERENCES = 40  # printed; all are counted


def reproduce(
    score: str, out: Path | None, settings: Settings, console: Console, data: Path | None = None
) -> int:
    """Reproduce a score. Return 0 if every verdict is the same, 1 if one differs.

    score: a name or hash in the store, or the path of a scorecard of `ratchet evaluate
    --benchmark`; data: the current path of that benchmark's file. Raises NotReproducible.
    """
    if scorecards := at_path(score):
        return _rejudge(score, scorecards, data, out, settings.home, console)
    store, profile = settings.store, settings.profile
    index = ManifestIndex.of(store)
    artifact = _score(score, store, index)
    manifest, card = artifact.manifest, Scorecard.stored(artifact)
    checkpoint = _checkpoint(card, store, index, settings)
    benchmark = scored_benchmark(card, artifact, index, settings)
    with Sandbox(profile.sandbox) as sandbox, Progress(console=console, transient=True) as progress:
        bars = {stage: progress.add_task(stage, total=None) for stage in STEPS}
        again = evaluate(
            checkpoint,
            card.checkpoint,
            card.checkpoint_hash,
            benchmark,
            sandbox,
            on_progress=lambda stage, done, total: progress.update(
                bars[stage], completed=done, total=total
            ),
            references=settings.home.path / "benchmarks",
        )
    if out:
        again.write(out)
    made_with = {"code": manifest.code_version} | manifest.hardware | manifest.packages
    return _report(manifest.name, made_with, card, again, console)


def _rejudge(
    path: str,
    scorecards: Sequence[Scorecard],
    data: Path | None,
    out: Path | None,
    home: Home,
    console: Console,
) -> int:
    from cli.evaluate.rejudge import judge_again

    if len(scorecards) > 1:
        raise NotReproducible(
            f"{path} holds scores on several benchmarks, "
            f"{', '.join(card.benchmark for card in scorecards)}: give one of its files"
        )
    [card] = scorecards
    if card.tool:
        raise NotReproducible(
            f"{path} was written by {card.tool}: judge its programs with `ratchet evaluate "
            "--benchmark NAME --completions FILE`"
        )
    if card.origin is None:
        raise NotReproducible(
            f"{path} is a checkpoint's score, and its passport is in the store: give its name, "
            f"such as {card.checkpoint}--heldout"
        )
    again = judge_again(card, card.origin, data, home.path, Console(stderr=True))
    if out:
        again.write(out, Figures.of(again).as_json())
    return _report(path, card.origin.made_with, card, again, console)


def differences(before: Scorecard, after: Scorecard) -> list[str]:
    """Return a line for each completion whose verdict differs or that only one scorecard has."""
    old, new = ({(s.task_id, s.sample): s for s in card.samples} for card in (before, after))
    lines = []
    for key in sorted(old.keys() | new.keys()):
        name = f"{key[0]}#{key[1]}"
        if key not in old or key not in new:
            lines.append(f"{name}: only in the {'new' if key in new else 'recorded'} score")
        elif (old[key].verdict, old[key].sets) != (new[key].verdict, new[key].sets):
            completion = (
                "same completion"
                if old[key].completion == new[key].completion
                else "different completion"
                if before.keeps_completions
                else "completion not recorded"
            )
            lines.append(
                f"{name}: recorded {_verdict(old[key])}, now {_verdict(new[key])}; {completion}"
            )
    return lines


def _verdict(sample: ScoredSample) -> str:
    """Return the verdict, with the passed sets if there are several: two failures may differ in
    them.
    """
    passed = [name for name, passes in sample.sets.items() if passes]
    return (
        f"{sample.verdict} ({', '.join(passed)} pass)"
        if len(sample.sets) > 1 and passed
        else sample.verdict
    )


def passport_differences(
    made_with: Mapping[str, Any], card: Scorecard, again: Scorecard
) -> list[str]:
    """Return a line for each difference in code, packages, machine, harness and isolation level."""
    recorded = {"harness": card.harness_version, "isolation": card.isolation or "unknown"}
    recorded |= made_with
    now = {"harness": again.harness_version, "isolation": again.isolation, "code": code_version()}
    now |= hardware() | package_versions()
    return [
        f"{name}: recorded {recorded.get(name, 'nothing')}, now {now.get(name, 'nothing')}"
        for name in recorded | now
        if recorded.get(name) != now.get(name)
    ]


def _report(
    name: str, made_with: Mapping[str, Any], card: Scorecard, again: Scorecard, console: Console
) -> int:
    """Print the differences. Return 1 if a verdict differs, else 0."""
    changed_verdicts = differences(card, again)
    completions = {(s.task_id, s.sample): s.completion for s in again.samples}
    changed_texts = sum(
        completions.get((s.task_id, s.sample)) != s.completion for s in card.samples
    )
    state = (
        f"{len(changed_verdicts)} of {len(card.samples)} verdicts differ"
        if changed_verdicts
        else f"all {len(card.samples)} verdicts are the same"
    )
    texts = (
        f"{changed_texts} completions differ"
        if card.keeps_completions
        else "the recorded score has no completions"
    )
    print_text(console, f"{name}: {state}; {texts}.", style="bold")
    before, now = (Rate.of(each).share for each in (card, again))
    console.print(
        f"pass@1 on {len(card.first)} tasks: recorded {100 * before:.2f} %, now {100 * now:.2f} %",
        highlight=False,
    )
    for line in changed_verdicts[:MAX_DIFFERENCES]:
        print_text(console, f"- {line}")
    if (more := len(changed_verdicts) - MAX_DIFFERENCES) > 0:
        console.print(f"and {more} more: --out FILE writes the new scorecard")
    changed = passport_differences(made_with, card, again)
    console.print("The passport differs in:" if changed else "The passport is the same.")
    for line in changed:
        print_text(console, f"- {line}")
    return 1 if changed_verdicts else 0


def _score(name: str, store: Store, index: ManifestIndex) -> Artifact:
    """Return the newest score of this name, or whose hash begins with it."""
    scores = [
        manifest
        for versions in index.by_content.values()
        for manifest in versions
        if manifest.kind == "scores" and "--" in manifest.name
    ]
    matching = [manifest for manifest in scores if names_manifest(name, manifest)]
    artifact = store.find("scores", matching[-1].name, matching[-1].key) if matching else None
    if artifact is None:
        names = ", ".join(sorted({manifest.name for manifest in scores}))
        raise NotReproducible(
            f"no score {name!r}: give one of {names}"
            if names
            else f"no score {name!r}: `ratchet evaluate CHECKPOINT` makes the first scores"
        )
    return artifact


def _checkpoint(card: Scorecard, store: Store, index: ManifestIndex, settings: Settings) -> Path:
    """Return the folder with the weights that were scored. Raises NotReproducible."""
    for manifest in index.by_content.get(card.checkpoint_hash, []):
        if manifest.kind == "checkpoints" and (
            artifact := store.find("checkpoints", manifest.name, manifest.key)
        ):
            store.verify(artifact)
            return artifact.path
    for entry in settings.history:
        folder = Path(entry.path)
        same = entry.checkpoint_hash == card.checkpoint_hash
        if same and (folder.is_dir() or holds(store, folder)):
            return pull_champion(store, folder, entry.checkpoint_hash)
    raise NotReproducible(
        f"the weights of {card.checkpoint} ({card.checkpoint_hash[:12]}) are missing: put their "
        "folder back"
    )


def command(
    score: Annotated[
        str,
        typer.Argument(
            help=(
                "A score such as chain-0001--heldout, the beginning of its hash, or the path of a "
                "scorecard."
            )
        ),
    ],
    data: Annotated[
        Path | None,
        typer.Option(help="With a scorecard's path: the benchmark's data file, if it was moved."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write the new scorecard to this file.")] = None,
    profile: ProfileOption = None,
) -> None:
    """Run a score again from its manifest and list every verdict that differs.

    Exits 0 if all verdicts are the same, else 1. For a score of the store, completions are
    generated and judged again. For a scorecard of `ratchet evaluate --benchmark`, its completions
    are judged again; if it holds none, they are read or generated again.
    """
    raise typer.Exit(reproduce(score, out, Settings.read(profile), screen(), data))


COMMAND = Command("Evaluate", command)
