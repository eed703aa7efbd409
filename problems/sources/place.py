"""Where a source's rows lie: a file, a folder, or a dataset on the hub at a commit; and what its columns are called there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from artifacts.hashing import hash_data, hash_file, hash_folder


@dataclass(frozen=True)
class Place:
    """With neither path nor hub, a known source's own dataset on the hub."""

    path: Path | None = None
    hub: str | None = None  # owner/name
    config: str | None = None  # of the hub's dataset
    revision: str | None = None  # branch or tag that is followed; None: the main branch
    commit: str | None = None  # what that was when it was last asked for: what is read
    columns: Mapping[str, str] = field(
        default_factory=dict
    )  # column of the schema -> the row's own name for it
    constants: Mapping[str, Any] = field(
        default_factory=dict
    )  # column of the schema -> its value in all rows

    @property
    def mapped(self) -> bool:
        return bool(self.columns or self.constants)

    @property
    def content(self) -> str:
        """What a dataset made from here names among its inputs: another one for another file, commit or mapping. Raises FileNotFoundError."""
        if self.path is not None:
            there = hash_file(self.path) if self.path.is_file() else hash_folder(self.path)
        else:
            there = f"{self.hub or 'hub'}@{self.commit}" if self.commit else "hub"
        mapping = [self.config, dict(self.columns), dict(self.constants)]
        return hash_data([there, mapping]) if self.mapped or self.config else there

    def __str__(self) -> str:
        at = f"{self.hub or 'the hub'}{f' at {self.commit[:12]}' if self.commit else ''}"
        return str(self.path) if self.path else at

    def to_json(self) -> Any:
        """A path or null where there is no more to say, as the first sources.json had it; else an object of what is set."""
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
        path = value.get("path")
        return cls(**value | {"path": Path(path) if path else None})
