"""The passport of an artifact: everything that it was made from, as a graph.

In: manifests, and where to begin. Out: a `Passport`: nodes, each with its inputs, and the main
facts for a reader.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from artifacts.fact_texts import fact_texts
from artifacts.hashing import MANIFEST, REMOVED, hash_data
from artifacts.integrity import CorruptArtifact, manifest_of
from artifacts.manifest import Manifest
from artifacts.store import Store, manifests

KINDS = ("datasets", "checkpoints", "scores")
# Inputs that are artifacts, even if no artifact of that name is left.
AN_ARTIFACT = frozenset(
    [
        "start",
        "checkpoint",
        "base_model",
        "raw_problems",
        "verified_problems",
        "augmented_problems",
        "synthetic_problems",
        "clean_problems",
        "difficulty_rankings",
        "training_rows",
    ]
)
REPORT = "contamination.json"


class Node(BaseModel):
    """An artifact, or an input without a manifest (a reward, a source, a benchmark's tasks)."""

    model_config = ConfigDict(frozen=True)

    id: str  # name@hash: two stages may make the same content, such as an empty dataset
    content_hash: str
    # datasets, checkpoints, scores; version: a ledger entry; input: not an artifact
    kind: str
    name: str
    made_from: tuple[tuple[str, str], ...] = ()  # (role, id)
    missing: bool = False  # it should be an artifact, and is not in the store
    manifest: Manifest | None = None

    @property
    def facts_line(self) -> str:
        """Return its figures, seed and isolation level in one line."""
        if self.manifest is None:
            return ""
        facts = fact_texts(self.manifest.facts)
        seed = [f"seed {self.manifest.seed}"] if self.manifest.seed is not None else []
        return ", ".join(
            [
                *facts[:6],
                *seed,
                *([f"sandbox {self.manifest.isolation}"] if self.manifest.isolation else []),
            ]
        )


class Passport(BaseModel):
    """The graph of everything that an artifact was made from.

    `nodes` in the order of the walk, the subject first.
    """

    model_config = ConfigDict(frozen=True)

    subject: str
    nodes: tuple[Node, ...]

    @property
    def missing(self) -> list[str]:
        return [f"{node.name} {node.content_hash[:12]}" for node in self.nodes if node.missing]

    def node(self, id: str) -> Node:
        return next(node for node in self.nodes if node.id == id)

    def summary(self) -> dict[str, Any]:
        """Return the most important facts by name; None or empty if the walk did not find them."""
        manifests = [node.manifest for node in self.nodes if node.manifest]
        models = [manifest for manifest in manifests if manifest.kind == "checkpoints"]
        trained = models[0] if models else None
        clean = next(
            (manifest for manifest in manifests if manifest.name == "clean_problems"), None
        )
        base = next((manifest for manifest in models if manifest.name == "base_model"), None)
        scores = [manifest for manifest in manifests if manifest.kind == "scores"]
        return {
            "checkpoint": trained.content_hash if trained else None,
            "dataset": clean.content_hash if clean else None,
            "contamination_report": clean.facts.get("reports", {}).get(REPORT) if clean else None,
            "reward": trained.inputs.get("reward") if trained else None,
            "base_model": base.content_hash if base else None,
            "base": (base.config.get("base") or "made from scratch") if base else None,
            "base_licence": base.facts.get("licence") if base else None,
            "config": trained.config if trained else {},
            "config_hash": hash_data(trained.config) if trained else None,
            "seeds": {
                manifest.name: manifest.seed for manifest in manifests if manifest.seed is not None
            },
            "code_versions": sorted({manifest.code_version for manifest in manifests}),
            "packages": trained.packages if trained else {},
            "hardware": trained.hardware if trained else {},
            "harness": sorted(
                {
                    str(manifest.config["harness"])
                    for manifest in scores
                    if "harness" in manifest.config
                }
            ),
            "isolation": sorted({manifest.isolation for manifest in scores if manifest.isolation}),
            "missing": self.missing,
        }

    def as_json(self) -> dict[str, Any]:
        edges = [
            {"from": source, "to": node.id, "role": role}
            for node in self.nodes
            for role, source in node.made_from
        ]
        nodes = [node.model_dump(mode="json", exclude={"made_from"}) for node in self.nodes]
        return {"subject": self.subject, "summary": self.summary(), "nodes": nodes, "edges": edges}

    def mermaid(self) -> str:
        """Return the graph as Mermaid text."""
        numbers = {node.id: f"n{i}" for i, node in enumerate(self.nodes)}
        boxes = [
            f'  {numbers[node.id]}["{node.kind}/{node.name}<br/>{node.content_hash[:12]}"]'
            for node in self.nodes
        ]
        lines = [
            f"  {numbers[source]} -->|{role}| {numbers[node.id]}"
            for node in self.nodes
            for role, source in node.made_from
        ]
        return "\n".join(["flowchart LR", *boxes, *lines, ""])


class ManifestIndex:
    """Find manifests by content hash. Among equal contents, one with the requested name, else the
    oldest, is returned.

    damaged: a line for each manifest that cannot be read; any of them may be one that is missing.
    """

    def __init__(self, manifests: Iterable[Manifest], damaged: Sequence[str] = ()) -> None:
        self.damaged = tuple(damaged)
        self.by_content: dict[str, list[Manifest]] = {}
        for manifest in sorted(
            manifests, key=lambda manifest: (manifest.created_at, manifest.name)
        ):
            self.by_content.setdefault(manifest.content_hash, []).append(manifest)
        self.names = {
            manifest.name for manifests in self.by_content.values() for manifest in manifests
        }

    @classmethod
    def of(cls, store: Store) -> ManifestIndex:
        """Read all manifests of a store that can be read."""
        manifests, damaged = [], []
        for path, text in _manifest_files(store):
            try:
                manifests.append(manifest_of(text, path))
            except CorruptArtifact as error:
                damaged.append(str(error))
        return cls(manifests, damaged)

    def find(self, role: str, content: str) -> Manifest | None:
        manifests = self.by_content.get(content, [])
        return next(
            (
                manifest
                for manifest in manifests
                if manifest.name in (role, role.rpartition("/")[2])
            ),
            manifests[0] if manifests else None,
        )

    def node(self, role: str, content: str) -> Node:
        """Return the node of an input: an artifact with its own inputs, one that is missing, or no
        artifact.
        """
        if (manifest := self.find(role, content)) is None:
            missing = (
                role in self.names or role.rpartition("/")[2] in self.names or role in AN_ARTIFACT
            )
            return Node(
                id=f"{role}@{content}",
                content_hash=content,
                kind="input",
                name=role,
                missing=missing,
            )
        return self.node_of(manifest)

    def node_of(self, manifest: Manifest) -> Node:
        inputs = {
            role: self._id(role, content) for role, content in manifest.inputs.items() if content
        }
        own = f"{manifest.name}@{manifest.content_hash}"
        made_from = tuple((role, id) for role, id in inputs.items() if id != own)
        return Node(
            id=own,
            content_hash=manifest.content_hash,
            kind=manifest.kind,
            name=manifest.name,
            made_from=made_from,
            manifest=manifest,
        )

    def _id(self, role: str, content: str) -> str:
        # A dataset on the hub is "hub@commit", and an id has its name before its last @.
        name = manifest.name if (manifest := self.find(role, content)) else role
        return f"{name}@{content.replace('@', ':')}"


def walk(subject: Node, index: ManifestIndex) -> Passport:
    """Return everything that the subject was made from, each once, breadth first."""
    nodes, pending = {subject.id: subject}, list(subject.made_from)
    while pending:
        role, id = pending.pop(0)
        if id not in nodes:
            nodes[id] = node = index.node(
                id.rpartition("@")[0] if index.find(role, id.rpartition("@")[2]) else role,
                id.rpartition("@")[2],
            )
            pending.extend(node.made_from)
    return Passport(subject=subject.name, nodes=tuple(nodes.values()))


def _manifest_files(store: Store) -> Iterator[tuple[Path | str, bytes]]:
    """Yield path and content of each manifest, also of removed artifacts."""
    for kind, file in product(KINDS, (MANIFEST, REMOVED)):
        if store.is_local:
            for path in manifests(store.cache / kind, file):
                yield path, path.read_bytes()
        else:
            for name in store.folder.glob(f"{kind}/*/*/{file}"):
                yield store.folder.at(name), store.folder.read(name)
