"""Trace a version, a score or an artifact back to the raw problems."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.tree import Tree

from artifacts.atomic import write_atomic
from artifacts.drawing import page, svg
from artifacts.passport import ManifestIndex, Node, Passport, walk
from artifacts.store import Store
from cli.explain import UnknownVersion, find
from cli.options import (
    ProfileOption,
)
from resources.home import NotReady
from resources.registry.ledger import Entry, champions
from resources.settings import Settings

GROUP = "Promote and explain"


DRAWN = (".svg", ".html", ".mmd")


def provenance(
    subject: str, as_json: bool, graph: Path | None, settings: Settings, console: Console
) -> int:
    """Exits 1 where a link of the walk is nowhere any more. Raises UnknownVersion, and
    CorruptArtifact for an artifact whose files were changed.
    """
    if graph and graph.suffix not in DRAWN:
        raise NotReady(f"{graph}: a graph is drawn as {', '.join(DRAWN)}: name a file that ends so")
    found_passport = passport(subject, settings)
    verify(found_passport, settings.store)
    if graph:
        write_atomic(
            graph,
            {".svg": svg, ".html": page, ".mmd": Passport.mermaid}[graph.suffix](found_passport),
        )
    if as_json:
        console.print_json(json.dumps(found_passport.as_json()))
    elif graph is None:
        show(found_passport, console)
    return 1 if found_passport.missing else 0


def verify(found_passport: Passport, store: Store) -> None:
    """Check the files of every artifact of the walk. Raises CorruptArtifact."""
    for manifest in (node.manifest for node in found_passport.nodes):
        if manifest:
            store.find(manifest.kind, manifest.name, manifest.key)


def passport(subject: str, settings: Settings) -> Passport:
    """Print the provenance of a version (3, champion, a checkpoint's name), a score
    (`chain-0001--heldout`), or the beginning of any hash.
    """
    index = ManifestIndex.of(settings.store)
    history = settings.ledger.history()
    try:
        return of_entry(find(history, subject)[-1], index)
    except UnknownVersion as unknown:
        manifests = [manifest for found in index.by_content.values() for manifest in found]
        meant = [
            m
            for m in manifests
            if m.name == subject or (len(subject) >= 6 and m.content_hash.startswith(subject))
        ]
        if not meant:
            scores = ", ".join(
                sorted(
                    manifest.name
                    for manifest in manifests
                    if manifest.kind == "scores" and "--" in manifest.name
                )
            )
            raise UnknownVersion(
                f"{unknown}; nor is it a score: {scores or 'there are none yet'}"
            ) from unknown
        return walk(index.node_of(meant[-1]), index)


def of_entry(entry: Entry, index: ManifestIndex) -> Passport:
    """A version was made from its checkpoint, and from the scores by which it was judged."""
    chain = entry.chain.removesuffix("/first")
    inputs = [("checkpoint", entry.checkpoint_hash)]
    bundles = [
        m
        for manifests in index.by_content.values()
        for m in manifests
        if (m.kind, m.name) == ("scores", chain)
    ]
    inputs += [("judged by", bundles[-1].content_hash)] if bundles else []
    nodes = [
        (role, index.node(role if role == "checkpoint" else chain, content))
        for role, content in inputs
    ]
    subject = Node(
        id=f"version {entry.version}@{entry.entry}",
        content_hash=entry.checkpoint_hash,
        kind="version",
        name=f"version {entry.version} ({entry.checkpoint})",
        made_from=tuple((role, each.id) for role, each in nodes),
    )
    return walk(subject, index)


def show_champion(settings: Settings, console: Console) -> None:
    """From the champion to the raw problems."""
    if not (stack := champions(settings.ledger.history())):
        console.print("There is no champion yet: `ratchet demo` makes the first.")
        return
    show(passport(str(stack[-1].version), settings), console)


def show(found_passport: Passport, console: Console) -> None:
    tree = Tree(f"[bold]{found_passport.subject}[/]")
    _grow(tree, found_passport.nodes[0], found_passport, set())
    console.width = max(console.width, 240)  # long lines are the terminal's to wrap
    console.print(tree, soft_wrap=True)
    summary = found_passport.summary()
    rows = {
        "dataset": summary["dataset"],
        "contamination report": summary["contamination_report"],
        "reward": summary["reward"],
        "base model": f"{summary['base_model']} ({summary['base']})"
        if summary["base_model"]
        else None,
        "config": summary["config_hash"],
        "seeds": ", ".join(f"{name} {seed}" for name, seed in summary["seeds"].items()),
        "code": ", ".join(summary["code_versions"]),
        "harness": ", ".join(summary["harness"]),
        "isolation": ", ".join(summary["isolation"]),
    }
    console.print()
    for name, value in rows.items():
        console.print(f"{name:<21}{value or 'not known here'}", soft_wrap=True, highlight=False)
    if found_passport.missing:
        console.print(
            f"nowhere any more: {', '.join(found_passport.missing)}", style="red", soft_wrap=True
        )


def _grow(tree: Tree, node: Node, found_passport: Passport, shown: set[str]) -> None:
    """Each artifact once with what it was made from; met again, it is named."""
    for role, id in node.made_from:
        source = found_passport.node(id)
        head = (
            f"[bold]{source.kind}/{source.name}[/] {source.content_hash[:12]}"
            if source.manifest
            else f"{role} {source.content_hash[:12]}"
        )
        if source.missing:
            tree.add(f"[red]{head} is nowhere any more[/]")
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
            _grow(branch, source, found_passport, shown)


def command(
    subject: Annotated[
        str,
        typer.Argument(
            help=(
                "A version as above, a score such as chain-0001--heldout, or the beginning of a "
                "hash."
            )
        ),
    ] = "champion",
    as_json: Annotated[
        bool, typer.Option("--json", help="For machines: nodes, edges, and the summary.")
    ] = False,
    graph: Annotated[
        Path | None, typer.Option(help="Draw it to this file: .svg, .html or .mmd (Mermaid).")
    ] = None,
    profile: ProfileOption = None,
) -> None:
    """Trace a version, a score or an artifact back to the raw problems.

    Exits 1 if an artifact on the way is missing.
    """
    raise typer.Exit(provenance(subject, as_json, graph, Settings.read(profile), Console()))
