"""The settings of a process, read once where it starts and passed down as one object.

In: options of the command line, over the environment (RATCHET_HOME, RATCHET_PROFILE, RATCHET_SET,
RATCHET_UNVERIFIED). Out: a `Settings`. Nothing else reads or writes these variables; a process that
is started gets them by `environment`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from artifacts.store import Store
from resources.config.load import FOLDER, load_profile, profile_path
from resources.config.profile import Profile
from resources.home import Home
from resources.registry.history import history_of
from resources.registry.ledger import Entry, Ledger
from resources.registry.mlflow import Registry


@dataclass(frozen=True)
class Settings:
    """The home, and a profile by its name with the changes over it.

    place: the home's folder. Its records are where the profile says.
    """

    place: Home
    profile_name: str = "embedded"  # a name of ours, or the path of a YAML file
    changes: tuple[str, ...] = ()  # `section.key=value`
    unverified: bool = False  # train with a reward that the exploit battery refused
    chosen: bool = False  # whether the profile was named, not taken by default

    @classmethod
    def read(
        cls,
        profile: str | None = None,
        changes: Sequence[str] = (),
        unverified: bool = False,
        *,
        unfinished: bool = False,
    ) -> Settings:
        """Return the given options, each in place of its environment variable. unfinished: the home
        may be one that is being restored.
        """
        name = profile or os.environ.get("RATCHET_PROFILE")
        return cls(
            Home.from_environment(unfinished=unfinished),
            name or "embedded",
            tuple(changes or os.environ.get("RATCHET_SET", "").splitlines()),
            unverified or os.environ.get("RATCHET_UNVERIFIED") == "1",
            chosen=bool(name),
        )

    @cached_property
    def profile(self) -> Profile:
        """The whole typed config. Raises ProfileError."""
        return load_profile(self.profile_name, self.changes, unverified=self.unverified)

    @cached_property
    def home(self) -> Home:
        """The home with the database that the profile names. Raises ProfileError."""
        return replace(self.place, database=self.profile.storage.ledger)

    @property
    def reference(self) -> str:
        """A name that finds the profile again from any folder. Raises ProfileError."""
        path = profile_path(self.profile_name)
        return self.profile_name if path.parent == FOLDER else str(path.resolve())

    @property
    def title(self) -> str:
        return " ".join([self.reference, *self.changes])

    @property
    def store(self) -> Store:
        return self.home.store(self.profile.storage.root)

    @property
    def ledger(self) -> Ledger:
        """The ledger that the profile names (`storage.ledger`), else the home's own file."""
        return Ledger(self.home.ledger, self.home.path)

    @property
    def history(self) -> list[Entry]:
        """The ledger's entries, oldest first. Raises LedgerChanged and LedgerUnreachable."""
        return history_of(self.ledger, self.home.runs)

    @property
    def registry(self) -> Registry:
        """The MLflow that the profile names (`storage.mlflow`), else the home's own file."""
        return Registry(self.home.path, self.profile.storage.mlflow)

    def with_changes(self, changes: Sequence[str]) -> Settings:
        """Return these settings with more changes to the profile."""
        return replace(self, changes=(*self.changes, *changes))

    def environment(self) -> dict[str, str]:
        """Return the variables from which a process that is started reads the same settings."""
        return {
            "RATCHET_HOME": str(self.place.path),
            "RATCHET_PROFILE": self.reference,
            "RATCHET_SET": "\n".join(self.changes),
            "RATCHET_UNVERIFIED": "1" if self.unverified else "",
        }
