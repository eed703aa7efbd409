"""Writes observations, feedback and candidates without a request waiting for the disk.

In: rows, from the event loop. Out: rows in the home's files, within about `PAUSE_S`. A disk that
takes none (full, read-only) is tried again until it does; up to `MAX_WAITING` rows wait in memory.
After `kill -9` these and the rows of the last `PAUSE_S` are missing; the tables are whole.
"""

from __future__ import annotations

import logging
import queue
import sqlite3
import time
from collections.abc import Callable
from threading import Event, Thread
from typing import Any

from resources.registry.ledger_database import LedgerUnreachable
from serving.gateway.candidates import Candidate, Candidates
from serving.gateway.observations import Feedback, Observation, Observations

PAUSE_S = 0.05  # rows of this time are written together
AGAIN_S = 1.0  # between two attempts
IDLE_S = 1.0  # without rows; then the file is closed, so that its disk can be unmounted
MAX_WAITING = 100_000  # rows kept in memory while the disk takes none
AGAIN = (sqlite3.OperationalError, OSError, LedgerUnreachable)
Row = Observation | Feedback | Candidate
logger = logging.getLogger(__name__)


class Recorder:
    """Writes observations, feedback and candidates in the background.

    lost: rows that were not written: too many for memory, or the file is damaged. fault: why the
    last attempt failed; "" if it did not.
    """

    def __init__(self, observations: Observations, candidates: Candidates) -> None:
        self.observations, self.candidates = observations, candidates
        self.lost, self.fault = 0, ""
        self._kept = 0  # rows that the last attempt did not write
        self._rows: queue.SimpleQueue[Row | None] = queue.SimpleQueue()
        self._closing = Event()
        self._thread = Thread(target=self._run, name="recorder", daemon=True)
        self._thread.start()

    def add(self, row: Row) -> None:
        if self._rows.qsize() + self._kept < MAX_WAITING:
            self._rows.put(row)
        else:
            self.lost += 1

    def close(self) -> None:
        """Write what is left, with one attempt."""
        self._closing.set()
        self._rows.put(None)
        self._thread.join()
        self.observations.close()

    def _run(self) -> None:
        rows: list[Row] = []
        while not self._closing.is_set():
            try:
                first = self._rows.get(timeout=IDLE_S)
            except queue.Empty:
                self.observations.close()
                continue
            if first:
                time.sleep(PAUSE_S)
                rows = self._write([first, *self._arrived()])
            while rows and not self._closing.wait(AGAIN_S):
                rows = self._write([*rows, *self._arrived(MAX_WAITING - len(rows))])
        self.lost += len(self._write([*rows, *self._arrived()]))

    def _arrived(self, most: int = MAX_WAITING) -> list[Row]:
        """Return up to `most` rows that wait."""
        rows: list[Row] = []
        while len(rows) < most and not self._rows.empty():
            if row := self._rows.get():
                rows.append(row)
        return rows

    def _write(self, rows: list[Row]) -> list[Row]:
        """Write rows, and return those that can be written later."""
        candidates = [row for row in rows if isinstance(row, Candidate)]
        others = [row for row in rows if not isinstance(row, Candidate)]
        left: list[Row] = []
        fault = ""
        parts: list[tuple[Callable[[list[Any]], None], list[Row]]] = [
            (self.observations.append, list(others)),
            (self.candidates.append, list(candidates)),
        ]
        for append, part in parts:
            try:
                if part:
                    append(part)
            except AGAIN as error:  # a full or read-only disk, or a server that is away
                fault, left = str(error), [*left, *part]
            except sqlite3.Error as error:  # a damaged file
                fault, self.lost = str(error), self.lost + len(part)
        if fault and fault != self.fault:  # once, not at every attempt
            logger.warning("rows are not written: %s", fault)
        self.fault, self._kept = fault, len(left)
        return left
