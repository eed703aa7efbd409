"""Files of a home that are damaged, so that a command can show everything else."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from artifacts.integrity import CorruptArtifact
from artifacts.store import Artifact, Store
from problems.columns import ProblemError
from resources.registry.ledger import LedgerChanged
from resources.registry.ledger_database import LedgerUnreachable

FILES_ARE_DAMAGED = 2  # the exit code for wrong input and files (cli/main.py)


class Damage:
    """Collects one line for each damaged file."""

    def __init__(self) -> None:
        self._lines: dict[str, None] = {}

    @contextmanager
    def collected(self) -> Iterator[None]:
        """Keep the error of a damaged file, and leave out what the block would have shown."""
        try:
            yield
        except (CorruptArtifact, LedgerChanged, LedgerUnreachable, ProblemError) as error:
            self.add([str(error)])

    def add(self, lines: Iterable[str]) -> None:
        self._lines |= dict.fromkeys(lines)

    def whole(self, store: Store, names: Iterable[str]) -> dict[str, Artifact]:
        """Return the current datasets of these names, without the damaged ones."""
        artifacts = {}
        for name in names:
            with self.collected():
                if artifact := store.current("datasets", name):
                    artifacts[name] = artifact
        return artifacts

    def report(self) -> None:
        """Print the lines on stderr."""
        for line in self._lines:
            print(f"error: {line}", file=sys.stderr)

    def exit_code(self, otherwise: int = 0) -> int:
        """Print the lines on stderr. Return 2 if there are any, else the command's own code."""
        self.report()
        return FILES_ARE_DAMAGED if self._lines else otherwise
