"""The settings of a process, read once where it starts and passed down as one object.

In: options of the command line, over the environment (RATCHET_HOME, RATCHET_PROFILE, RATCHET_SET,
RATCHET_UNVERIFIED), over the profile that the home remembers. Out: a `Settings`. Nothing else reads
or writes these variables; a process that is started gets them by `environment`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from artifacts.atomic import write_atomic
from artifacts.store import Store
from resources.config.load import FOLDER, ProfileError, load_profile, profile_path
from resources.config.profile import Profile
from resources.history import history_of
from resources.home import Home
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
        home = Home.from_environment(unfinished=unfinished)
        name, remembered = profile or os.environ.get("RATCHET_PROFILE"), home.profile
        if name and remembered:
            _name_another(name, remembered, home)
        return cls(
            home,
            name or remembered or "embedded",
            tuple(changes or os.environ.get("RATCHET_SET", "").splitlines()),
            unverified or os.environ.get("RATCHET_UNVERIFIED") == "1",
            chosen=bool(name),
        )

    @cached_property
    def profile(self) -> Profile:
        """The whole typed config. Raises ProfileError."""
        try:
            return load_profile(self.profile_name, self.changes, unverified=self.unverified)
        except ProfileError as error:
            if self.chosen or not self.place.profile:
                raise
            raise ProfileError(
                f"{error} ({self.place.profile_file} names this profile: give --profile, or change "
                "the file)"
            ) from error

    def remember(self) -> None:
        """Let later commands in this home use this profile, if it was named and is the first. A
        home that may only be read remembers none.
        """
        if self.chosen and not self.place.profile:
            with suppress(OSError):
                self.place.path.mkdir(parents=True, exist_ok=True)
                write_atomic(self.place.profile_file, f"{self.place.stored(self.reference)}\n")

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


def _name_another(name: str, remembered: str, home: Home) -> None:
    """Say on stderr that a command uses another profile than the home's; once in a process."""
    other = name != remembered and Path(name).expanduser().absolute() != Path(remembered)
    if other and (name, remembered) not in _SAID:
        _SAID.add((name, remembered))
        print(
            f"note: {home.path} was begun with the profile {remembered}, and this command uses "
            f"{name} ({home.profile_file} names the first)",
            file=sys.stderr,
        )


_SAID: set[tuple[str, str]] = set()
