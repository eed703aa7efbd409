"""Writes observations and feedback without a request waiting for the disk.

In: rows, from the event loop. Out: rows in the home's file, within about `PAUSE_S`. After `kill -9`
the rows of that time are missing; the table is whole.
"""

from __future__ import annotations

import logging
import queue
import sqlite3
import time
from threading import Thread

from serving.gateway.observations import Feedback, Observation, Observations

PAUSE_S = 0.05  # rows of this time are written together
MOST = 100_000  # rows kept in memory while the disk takes none
Row = Observation | Feedback
logger = logging.getLogger(__name__)


class Recorder:
    """lost: rows that could not be written because the disk took none for too long."""

    def __init__(self, observations: Observations) -> None:
        self.observations = observations
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
            self._write([row for row in rows if row])

    def _write(self, rows: list[Row]) -> None:
        for attempt in range(3):
            try:
                if rows:
                    self.observations.append(rows)
                return
            except (sqlite3.Error, OSError) as error:  # a full disk: requests go on
                logger.warning("observations are not written: %s", error)
                time.sleep(0.5 * attempt)
        self.lost += len(rows)
