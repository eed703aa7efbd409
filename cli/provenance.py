"""Trace a version, a score or an artifact back to the raw problems."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.tree import Tree

from artifacts.atomic import write_atomic
from artifacts.manifest import Manifest
from artifacts.passport import ManifestIndex, Node, Passport, walk
from artifacts.store import Store
from cli.app.commands import Command
from cli.app.options import ProfileOption
from cli.display.screen import screen
from cli.lookup.damage import Damage
from pipelines.watch.text import print_text
from resources.registry.ledger import Entry, champions
from resources.registry.versions import UnknownVersion, find
from resources.settings import Settings


def provenance(
    subject: str, as_json: bool, graph: Path | None, settings: Settings, console: Console
) -> int:
    """Print the provenance, or write it as a Mermaid graph. Return 1 if an artifact is missing, 2
    if a manifest cannot be read, else 0.

    Raises UnknownVersion, and CorruptArtifact for an artifact whose files have changed.
    """
    damage = Damage()
    passport = passport_of(subject, settings, damage)
    verify(passport, settings.store)
    if graph:
        write_atomic(graph, passport.mermaid())
        print_text(console, f"{graph}")
    if as_json:
        console.print_json(json.dumps(passport.as_json()))
    elif graph is None:
        show(passport, console)
    return damage.exit_code(1 if passport.missing else 0)


def verify(passport: Passport, store: Store) -> None:
    """Check the files of every artifact in the passport. Raises CorruptArtifact."""
    for manifest in (node.manifest for node in passport.nodes):
        if manifest:
            store.find(manifest.kind, manifest.name, manifest.key)


def passport_of(subject: str, settings: Settings, damage: Damage) -> Passport:
    """Return the passport of a version (3, champion, a checkpoint's name), a score
    (`chain-0001--heldout`), or an artifact by the beginning of its hash. Raises UnknownVersion.
    """
    index = ManifestIndex.of(settings.store)
    damage.add(index.damaged)
    history = settings.history
    try:
        return of_entry(find(history, subject)[-1], index)
    except UnknownVersion as unknown:
        manifests = [each for versions in index.by_content.values() for each in versions]
        matching = [each for each in manifests if names_manifest(subject, each)]
        if not matching:
            damage.report()  # it may be one of these
            scores = {
                each.name for each in manifests if each.kind == "scores" and "--" in each.name
            }
            raise UnknownVersion(
                f"{unknown}; known scores: {', '.join(sorted(scores)) or 'none yet'}"
            ) from unknown
        return walk(index.node_of(matching[-1]), index)


def names_manifest(name: str, manifest: Manifest) -> bool:
    """Return whether this is the manifest's name, or the beginning of its hash (6 characters or
    more).
    """
    return manifest.name == name or (len(name) >= 6 and manifest.content_hash.startswith(name))


def of_entry(entry: Entry, index: ManifestIndex) -> Passport:
    """Return the passport of a version: its checkpoint, and the scores that its decision used."""
    run_id = entry.run_id.removesuffix("/first")
    scores = [
        manifest
        for manifests in index.by_content.values()
        for manifest in manifests
        if (manifest.kind, manifest.name) == ("scores", run_id)
    ]
    nodes = [("checkpoint", index.node("checkpoint", entry.checkpoint_hash))]
    nodes += [("judged by", index.node(run_id, scores[-1].content_hash))] if scores else []
    subject = Node(
        id=f"version {entry.version}@{entry.entry}",
        content_hash=entry.checkpoint_hash,
        kind="version",
        name=f"version {entry.version} ({entry.checkpoint})",
        made_from=tuple((role, each.id) for role, each in nodes),
    )
    return walk(subject, index)


def show_champion(settings: Settings, console: Console) -> int:
    """Print the provenance of the champion. Return 1 if an artifact is missing, else 0."""
    if not (stack := champions(settings.history)):
        console.print("There is no champion yet: `ratchet demo` makes the first.")
        return 0
    return provenance(str(stack[-1].version), False, None, settings, console)


def show(passport: Passport, console: Console) -> None:
    """Print the passport as a tree, then a summary."""
    tree = Tree(f"[bold]{passport.subject}[/]")
    _grow(tree, passport.nodes[0], passport, set())
    console.width = max(console.width, 240)  # the terminal wraps long lines
    console.print(tree, soft_wrap=True)
    console.print()
    for name, value in summary_rows(passport).items():
        print_text(console, f"{name:<21}{value or 'unknown'}")
    if passport.missing:
        console.print(f"missing: {', '.join(passport.missing)}", style="red", soft_wrap=True)


def summary_rows(passport: Passport) -> dict[str, str | None]:
    """Return the passport's most important facts, a text for each name; None or "" if unknown."""
    summary = passport.summary()
    return {
        "dataset": summary["dataset"],
        "contamination report": summary["contamination_report"],
        "reward": summary["reward"],
        "base model": f"{summary['base_model']} ({summary['base']})"
        if summary["base_model"]
        else None,
        "licence of the base": summary["base_licence"],
        "config": summary["config_hash"],
        "seeds": ", ".join(f"{name} {seed}" for name, seed in summary["seeds"].items()),
        "code": ", ".join(summary["code_versions"]),
        "harness": ", ".join(summary["harness"]),
        "isolation": ", ".join(summary["isolation"]),
    }


def _grow(tree: Tree, node: Node, passport: Passport, shown: set[str]) -> None:
    """Add the artifacts that a node was made from; repeated ones are only named."""
    for role, id in node.made_from:
        source = passport.node(id)
        head = (
            f"[bold]{source.kind}/{source.name}[/] {source.content_hash[:12]}"
            if source.manifest
            else f"{role} {source.content_hash[:12]}"
        )
        if source.missing:
            tree.add(f"[red]{head} is missing[/]")
        elif id in shown or source.manifest is None:
            tree.add(f"{head}{'  (above)' if source.made_from else ''}")
        else:
            shown.add(id)
            branch = tree.add(f"{head}  {source.facts_line}")
            manifest = source.manifest
            branch.add(
                f"[dim]{manifest.created_at}, code {manifest.code_version}, "
                f"{manifest.hardware.get('cpu')}[/]"
            )
            _grow(branch, source, passport, shown)


def command(
    subject: Annotated[
        str,
        typer.Argument(
            help=(
                "A version (number, champion, previous, challenger, or a checkpoint's name), a "
                "score such as chain-0001--heldout, or the beginning of a hash."
            )
        ),
    ] = "champion",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print nodes, edges and summary as JSON.")
    ] = False,
    graph: Annotated[
        Path | None, typer.Option(help="Write the graph to this file, as Mermaid.")
    ] = None,
    profile: ProfileOption = None,
) -> None:
    """Trace a version, a score or an artifact back to the raw problems.

    Exits 1 if an artifact is missing.
    """
    raise typer.Exit(provenance(subject, as_json, graph, Settings.read(profile), screen()))


COMMAND = Command("Promote and explain", command)
