"""Where a source's rows are, and the names of its columns.

A place is a file, a folder, or a dataset on the hub at a commit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from artifacts.hashing import hash_data, hash_file, hash_folder

SHIPPED = "shipped-"  # begins the version of a source that comes with Ratchet
PATHS = ("path", "samples")


@dataclass(frozen=True)
class Place:
    """A place. Without path and hub, it is a known source's own dataset on the hub, or a source
    that comes with Ratchet.
    """

    path: Path | None = None
    hub: str | None = None  # owner/name
    config: str | None = None  # of the hub dataset
    revision: str | None = None  # branch or tag to follow; None: the main branch
    commit: str | None = None  # commit of the revision when last resolved; this is read
    # column of the schema -> the row's own name for it
    columns: Mapping[str, str] = field(default_factory=dict)
    # column of the schema -> its value in all rows
    constants: Mapping[str, Any] = field(default_factory=dict)
    samples: Path | None = None  # file of a model's programs for the problems

    @property
    def mapped(self) -> bool:
        return bool(self.columns or self.constants)

    @property
    def content(self) -> str:
        """Identifies the content among a dataset's inputs; differs by file, commit and mapping.

        Raises FileNotFoundError.
        """
        if self.path is not None:
            identity = hash_file(self.path) if self.path.is_file() else hash_folder(self.path)
        else:
            identity = f"{self.hub or 'hub'}@{self.commit}" if self.commit else "hub"
        mapping = [self.config, dict(self.columns), dict(self.constants)]
        if self.samples is not None:
            mapping.append(hash_file(self.samples))
        changed = self.mapped or self.config or self.samples
        return hash_data([identity, mapping]) if changed else identity

    def __str__(self) -> str:
        if (self.commit or "").startswith(SHIPPED):
            return "shipped with Ratchet"
        at = f"{self.hub or 'the hub'}{f' at {self.commit[:12]}' if self.commit else ''}"
        return str(self.path) if self.path else at

    def to_json(self) -> Any:
        """Return a path or null if nothing else is set, else an object of the set fields.

        The first sources.json had only paths and nulls.
        """
        if self == Place(self.path):
            return self.path and str(self.path)
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {
            name: str(value) if isinstance(value, Path) else value
            for name, value in values.items()
            if value
        }

    @classmethod
    def from_json(cls, value: Any) -> Place:
        """Inverse of `to_json`. Raises TypeError on anything else."""
        if value is None or isinstance(value, str):
            return cls((value and Path(value)) or None)
        paths = {name: value[name] and Path(value[name]) for name in PATHS if name in value}
        return cls(**value | paths)
