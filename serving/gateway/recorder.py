"""Writes observations, feedback and candidates without a request waiting for the disk.

In: rows, from the event loop. Out: rows in the home's files, within about `PAUSE_S`. After
`kill -9` the rows of that time are missing; the tables are whole.
"""

from __future__ import annotations

import logging
import queue
import sqlite3
import time
from collections.abc import Callable
from threading import Thread
from typing import Any

from serving.gateway.candidates import Candidate, Candidates
from serving.gateway.observations import Feedback, Observation, Observations

PAUSE_S = 0.05  # rows of this time are written together
MOST = 100_000  # rows kept in memory while the disk takes none
Row = Observation | Feedback | Candidate
logger = logging.getLogger(__name__)


class Recorder:
    """lost: rows that could not be written because the disk took none for too long."""

    def __init__(self, observations: Observations, candidates: Candidates) -> None:
        self.observations, self.candidates = observations, candidates
        self.lost = 0
        self._rows: queue.SimpleQueue[Row | None] = queue.SimpleQueue()
        self._thread = Thread(target=self._run, name="recorder", daemon=True)
        self._thread.start()

    def add(self, row: Row) -> None:
        if self._rows.qsize() < MOST:
            self._rows.put(row)
        else:
            self.lost += 1

    def close(self) -> None:
        """Write what is left."""
        self._rows.put(None)
        self._thread.join()

    def _run(self) -> None:
        closed = False
        while not closed:
            rows = [self._rows.get()]
            time.sleep(PAUSE_S if rows[0] else 0)
            while not self._rows.empty():
                rows.append(self._rows.get())
            closed = None in rows
            candidates = [row for row in rows if isinstance(row, Candidate)]
            others = [row for row in rows if row and not isinstance(row, Candidate)]
            self._write(self.observations.append, others)
            self._write(self.candidates.append, candidates)

    def _write(self, append: Callable[[list[Any]], None], rows: list[Any]) -> None:
        for attempt in range(3):
            try:
                if rows:
                    append(rows)
                return
            except (sqlite3.Error, OSError) as error:  # a full disk: requests go on
                logger.warning("rows are not written: %s", error)
                time.sleep(0.5 * attempt)
        self.lost += len(rows)
