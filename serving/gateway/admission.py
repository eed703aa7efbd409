"""The queue in front of a version: bounded, by priority, with deadlines.

In: requests. Out: their turn, or a refusal (429) at once when the queue is full.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from serving.gateway.refusals import Refused
from serving.running_clock import running_clock


@dataclass(eq=False)
class _Ticket:
    priority: int
    number: int
    turn: asyncio.Future[None]


class Admission:
    """The queue in front of one version.

    at_once: requests that run together. waiting: most requests that wait. For one event loop.
    """

    def __init__(self, at_once: int, waiting: int) -> None:
        self.at_once, self.waiting = at_once, waiting
        self.running = 0
        self._clock = running_clock()
        self._queue: list[_Ticket] = []
        self._number = 0
        self._mean_s = 1.0  # moving average of how long a request runs

    @property
    def queued(self) -> int:
        return len(self._queue)

    @property
    def idle(self) -> bool:
        """Whether a request would run at once, with half of the places still free."""
        return not self._queue and self.running < self.at_once // 2 + 1

    @asynccontextmanager
    async def turn(self, priority: int, deadline: float) -> AsyncIterator[None]:
        """Wait for a turn, and hold it. Higher priorities go first, then earlier arrivals.

        deadline: in the event loop's time. Raises Refused (429), and TimeoutError at the deadline.
        """
        if self.running < self.at_once and not self._queue:
            self.running += 1
        else:
            await self._wait(priority, deadline)
        began = self._clock.now()
        try:
            yield
        finally:
            self._mean_s += 0.1 * (self._clock.now() - began - self._mean_s)
            self.running -= 1
            self._admit()

    async def _wait(self, priority: int, deadline: float) -> None:
        self._make_room(priority)
        self._number += 1
        ticket = _Ticket(priority, self._number, asyncio.get_running_loop().create_future())
        self._queue.append(ticket)
        self._queue.sort(key=lambda each: (-each.priority, each.number))
        try:
            async with asyncio.timeout_at(deadline):
                await ticket.turn
        except (TimeoutError, asyncio.CancelledError):
            turn = ticket.turn
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self.running -= 1  # it had its turn already
                self._admit()
            raise
        finally:
            if ticket in self._queue:
                self._queue.remove(ticket)

    def _make_room(self, priority: int) -> None:
        """Refuse this request, or one of lower priority, if the queue is full."""
        if len(self._queue) < self.waiting:
            return
        wait_s = self._mean_s * (len(self._queue) + 1) / self.at_once
        refusal = Refused(429, "overloaded", "the queue is full: try again later", wait_s)
        if not self._queue or self._queue[-1].priority >= priority:
            raise refusal
        last = self._queue.pop()
        if not last.turn.done():
            last.turn.set_exception(refusal)

    def _admit(self) -> None:
        while self._queue and self.running < self.at_once:
            ticket = self._queue.pop(0)
            if not ticket.turn.done():
                self.running += 1
                ticket.turn.set_result(None)
