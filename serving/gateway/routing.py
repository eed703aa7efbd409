"""Which version answers a request.

In: the key of a request (its user, else the request itself). Out: a `Choice`. `ChampionRouter` is
the default; a release brings another `Router`, which reads its record.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol


@dataclass(frozen=True)
class Choice:
    """The version that answers one request.

    version: number of the ledger (`Entry.version`). arm: "champion", or the challenger's name.
    share: share of the traffic that this arm has at present, in (0, 1]. release, step: of the
    release record, "" and 0 outside a release. shadows: versions that get a copy of the request;
    their answers are observed and never returned.
    """

    version: int
    arm: str = "champion"
    share: float = 1.0
    release: str = ""
    step: int = 0
    shadows: tuple[int, ...] = ()


def as_assigned(choice: Choice, version: int, versions: Sequence[int]) -> Choice:
    """Return the choice with the version that a proxy in front has assigned.

    versions: the router's, the champion first. Only a release of two versions can be split there;
    outside of one, and for any other version, the router's choice holds.
    """
    known = choice.release and not choice.shadows and len(versions) == 2 and version in versions
    if not known or version == choice.version:
        return choice
    arm = "champion" if version == versions[0] else f"version {version}"
    return replace(choice, version=version, arm=arm, share=1 - choice.share)


class Router(Protocol):
    """Called for every request, in the event loop: it must not wait for a disk or a lock."""

    def choose(self, key: str) -> Choice:
        """Return the version that answers this request. Raises LookupError without a champion."""
        ...

    def versions(self) -> Sequence[int]:
        """Return the versions that must be loaded beside the ledger's champion. Raises LookupError
        without a champion.
        """
        ...


class ChampionRouter:
    """Sends every request to the champion. champion: the version that answers as champion at
    present; raises LookupError without one.
    """

    def __init__(self, champion: Callable[[], int]) -> None:
        self.champion = champion

    def choose(self, key: str) -> Choice:
        return Choice(self.champion())

    def versions(self) -> Sequence[int]:
        return [self.champion()]
