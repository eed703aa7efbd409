"""Write a model card in Hugging Face's format."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console

from artifacts.atomic import write_atomic
from artifacts.passport import ManifestIndex, Passport
from artifacts.store import Store
from assets.score_tables import FULL_AND_CLEAN, full_and_clean
from cli.app.commands import Command
from cli.app.options import (
    ProfileOption,
    VersionArgument,
)
from cli.display.outcome import outcome
from cli.display.screen import screen
from cli.lookup.damage import Damage
from cli.provenance import of_entry, summary_rows, verify
from evaluation.reports.figures import Suspects
from evaluation.scorecard import Scorecard
from pipelines.watch.text import print_text
from problems.dataset.evidence import suspects_of
from resources.home import Home, NotReady
from resources.registry.ledger import Entry
from resources.registry.versions import find
from resources.settings import Settings
from verl_jobs.gguf.convert import NOT_STATED

FILE = "README.md"


TRAINING_SETTINGS = (
    "algorithm",
    "steps",
    "learning_rate",
    "group_size",
    "problems_per_step",
    "temperature",
)


def card(version: str, out: Path | None, wandb: bool, settings: Settings, console: Console) -> int:
    """Print the model card, or write it to a folder or Markdown file; log it to W&B too if `wandb`
    is set. Return 2 if a manifest cannot be read, else 0.

    Raises UnknownVersion, NotReady for a path of another kind, and CorruptArtifact for an artifact
    whose files have changed.
    """
    target = _target(out) if out else None
    store, history = settings.store, settings.history
    entry = find(history, version)[-1]
    index, damage = ManifestIndex.of(store), Damage()
    damage.add(index.damaged)
    passport = of_entry(entry, index)
    verify(passport, store)
    text = model_card(
        entry,
        outcome(history, entry),
        passport,
        scores_of(entry, index, store),
        suspects_of(store),
    )
    if target:
        write_atomic(target, text)
        print_text(console, f"{target}")
    elif not wandb:
        console.print(text, markup=False, highlight=False, soft_wrap=True)
    if wandb:
        place = log_artifact(entry, passport, text, settings.home)
        print_text(console, place)
    return damage.exit_code()


def _target(out: Path) -> Path:
    """Return the file of the card. Raises NotReady for a path that names another kind of file."""
    if out.is_dir():
        return out / FILE
    if out.suffix == ".md":
        return out
    if out.is_file() or out.suffix[1:].isalpha():  # `v1.0` names a folder
        raise NotReady(f"--out: {out} is no folder and does not end in .md: give one of the two")
    return out / FILE


def scores_of(entry: Entry, index: ManifestIndex, store: Store) -> list[Scorecard]:
    """Return the newest scorecard of these weights for each benchmark, sorted by benchmark."""
    manifests = [
        manifest
        for versions in index.by_content.values()
        for manifest in versions
        if manifest.kind == "scores" and manifest.inputs.get("checkpoint") == entry.checkpoint_hash
    ]
    artifacts = [
        store.find("scores", manifest.name, manifest.key)
        for manifest in sorted(manifests, key=lambda manifest: manifest.created_at)
    ]
    cards = [Scorecard.stored(artifact) for artifact in artifacts if artifact]
    return sorted(
        {each.benchmark: each for each in cards}.values(), key=lambda each: each.benchmark
    )


def model_card(
    entry: Entry, outcome_text: str, passport: Passport, cards: list[Scorecard], suspects: Suspects
) -> str:
    """Return the README.md, with the metadata block that the hub reads."""
    from huggingface_hub import EvalResult, ModelCardData
    from huggingface_hub.repocard import ModelCard

    results = [
        EvalResult(
            task_type="text-generation",
            dataset_type=each.benchmark,
            dataset_name=each.benchmark,
            dataset_revision=each.benchmark_version,
            metric_type="pass@1",
            metric_name="pass@1",
            metric_value=round(each.pass_at_1, 4),
            verified=False,
        )
        for each in cards
    ]
    summary = passport.summary()
    base = summary["base"] if summary["base"] and summary["base"] != "made from scratch" else None
    licence = summary["base_licence"]
    data = ModelCardData(
        license=None if licence == NOT_STATED else licence,
        model_name=entry.checkpoint,
        eval_results=results or None,
        library_name="transformers",
        pipeline_tag="text-generation",
        language="code",
        base_model=base,
        tags=["code", "reinforcement-learning", "verl", "ratchet"],
        checkpoint_hash=entry.checkpoint_hash,
    )
    return str(
        ModelCard(
            f"---\n{data.to_yaml()}\n---\n\n{_body(entry, outcome_text, passport, cards, suspects)}"
        )
    )


def log_artifact(entry: Entry, passport: Passport, text: str, home: Home) -> str:
    """Log the version as a W&B artifact: a reference to its folder, the card, the passport.

    Offline unless WANDB_API_KEY is set. Return the run's URL, or its local folder.
    """
    import json

    import wandb

    mode: Literal["online", "offline"] = "online" if os.environ.get("WANDB_API_KEY") else "offline"
    settings = wandb.Settings(console="off", silent=True)
    with wandb.init(
        project="ratchet",
        job_type="registry",
        dir=str(home.path),
        mode=mode,
        name=f"version-{entry.version}",
        settings=settings,
    ) as run:
        artifact = wandb.Artifact(
            "ratchet",
            type="model",
            metadata={"version": entry.version, "checkpoint_hash": entry.checkpoint_hash},
        )
        for name, content in (
            (FILE, text),
            ("passport.json", json.dumps(passport.as_json(), indent=1)),
        ):
            with artifact.new_file(name, mode="w", encoding="utf-8") as file:
                file.write(content)
        artifact.add_reference(f"file://{entry.path}", name="checkpoint")
        run.log_artifact(artifact, aliases=[f"version-{entry.version}"])
        return str(run.url or run.dir)


def _body(
    entry: Entry, outcome_text: str, passport: Passport, cards: list[Scorecard], suspects: Suspects
) -> str:
    reasons = "\n".join(f"- {reason}" for reason in entry.decision.get("reasons", []))
    config = passport.summary()["config"]
    training = [(name, config[name]) for name in TRAINING_SETTINGS if name in config]
    rows = {"checkpoint": entry.checkpoint_hash} | summary_rows(passport)
    origin = [(name, value) for name, value in rows.items() if value]
    origin += [("missing", ", ".join(passport.missing))] if passport.missing else []
    scores = [
        (
            each.benchmark,
            *full_and_clean(each, suspects),
            len(each.first),
            each.benchmark_version[:12],
        )
        for each in cards
    ]
    columns = ("benchmark", *FULL_AND_CLEAN, "tasks", "version")
    sections = [
        f"# {entry.checkpoint}, version {entry.version}",
        f"A language model that writes Python, {outcome_text} on {entry.created_at[:10]} by a "
        f"statistical gate (entry {entry.entry} of its ledger).",
        f"## Scores\n\n{_table(columns, scores) if scores else 'No scores in this home.'}",
        f"## Why it was {outcome_text.split(',')[0]}\n\n{reasons}",
        "## Training\n\n"
        + (_table(("setting", "value"), training) if training else "Not trained in this home."),
        f"## Origin\n\n{_table(('input', 'value'), origin)}",
        f"```mermaid\n{passport.mermaid()}```",
        "## Limits\n\nIts programs are untrusted: run them in a sandbox. The scores hold for the "
        "benchmarks and versions above, and for no others.",
    ]
    return "\n\n".join(sections) + "\n"


def _table(head: tuple[str, ...], rows: Any) -> str:
    return "\n".join(
        [
            f"| {' | '.join(head)} |",
            f"|{'---|' * len(head)}",
            *(f"| {' | '.join(str(cell) for cell in row)} |" for row in rows),
        ]
    )


def command(
    version: VersionArgument = "champion",
    out: Annotated[
        Path | None,
        typer.Option(
            help="Write the card to this .md file, or as README.md to this folder; without it, "
            "print the card."
        ),
    ] = None,
    wandb: Annotated[
        bool,
        typer.Option(
            "--wandb",
            help="Also log version and card as a W&B artifact, offline without WANDB_API_KEY.",
        ),
    ] = False,
    profile: ProfileOption = None,
) -> None:
    """Write a model card in Hugging Face's format."""
    raise typer.Exit(card(version, out, wandb, Settings.read(profile), screen()))


COMMAND = Command("Promote and explain", command)
