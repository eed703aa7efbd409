"""The gateways that run on one home: one that cannot load a version does not decide for all.

In: what this gateway has loaded and could not load. Out: the same of every gateway that runs. Each
writes a file of its own in the home; one that was not renewed for some seconds does not count.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from artifacts.atomic import write_atomic
from serving.gateway.catalog import LoadFault

RENEW_S, GONE_S = 2.0, 10.0


@dataclass(frozen=True)
class Replica:
    """The versions that one gateway has loaded, and those that it could not load.

    faults: version -> why it could not be loaded, and when (seconds since 1970).
    """

    name: str
    loaded: frozenset[int]
    faults: Mapping[int, tuple[str, float]]


class GatewayReplicas:
    """The gateways that run on one home.

    folder: of the home. name: of this gateway; the default is random.
    """

    def __init__(self, folder: Path, name: str = "") -> None:
        self.folder, self.name = folder, name or secrets.token_hex(8)
        self.loaded: frozenset[int] = frozenset()
        self._written, self._due = "", 0.0

    def report(self, loaded: Iterable[int], faults: Mapping[int, LoadFault]) -> None:
        """Say what this gateway has. A file is written for a change, else every `RENEW_S`.

        Raises OSError.
        """
        self.loaded = frozenset(loaded)
        causes = {str(version): (fault.reason, fault.at) for version, fault in dict(faults).items()}
        text = json.dumps({"loaded": sorted(self.loaded), "faults": causes})
        if text != self._written or time.monotonic() >= self._due:
            write_atomic(self._file(), text)
            self._written, self._due = text, time.monotonic() + RENEW_S

    def running(self) -> list[Replica]:
        """Return the gateways that run at present; files of others are removed after an hour."""
        found, now = [], time.time()
        for file in sorted(self.folder.glob("*.json")):
            with suppress(OSError, ValueError, KeyError):  # it was removed meanwhile, or is damaged
                if (age := now - file.stat().st_mtime) > 3600:
                    file.unlink()
                if age > GONE_S:
                    continue
                state = json.loads(file.read_text(encoding="utf-8"))
                faults = {int(v): (text, at) for v, (text, at) in state["faults"].items()}
                found.append(Replica(file.stem, frozenset(state["loaded"]), faults))
        return found

    def failing(self, version: int, since: float, tolerated: float) -> str:
        """Return the reason of one gateway if more than this share of them could not load the
        version, each in an attempt after `since`; else "".
        """
        replicas = self.running()
        reasons = [
            each.faults[version][0]
            for each in replicas
            if version in each.faults and each.faults[version][1] > since
        ]
        if len(reasons) <= tolerated * len(replicas):
            return ""
        among = f" ({len(reasons)} of {len(replicas)} gateways)" if len(replicas) > 1 else ""
        return reasons[0] + among

    def out_of_service(self, versions: Iterable[int], faults: Mapping[int, LoadFault]) -> str:
        """Return why this gateway should get no requests: it could not load one of these versions,
        and another gateway has. "" if it should.
        """
        own = [version for version in versions if version in faults]
        if not own:
            return ""
        elsewhere = {v for each in self.running() if each.name != self.name for v in each.loaded}
        return next((faults[v].reason for v in own if v in elsewhere), "")

    def _file(self) -> Path:
        return self.folder / f"{self.name}.json"
