"""Clients of a gateway that keep on asking."""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import suppress
from typing import Any

from tests.serving.gateway_server import ask, call, eventually

PATIENCE_S = 180.0
FAIL = [{"role": "user", "content": "please fail"}]


class Clients:
    """Clients that send requests until stopped, each with one retry if the connection breaks."""

    def __init__(self, url: str, number: int = 4, share_of_faults: int = 0, word: str = "") -> None:
        self.word = word
        self.url, self.faults = url, share_of_faults
        self.statuses: Counter[int] = Counter()
        self.stop = threading.Event()
        self.threads = [threading.Thread(target=self._run, args=(n,)) for n in range(number)]

    def __enter__(self) -> Clients:
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def get_answers(self, count: int) -> None:
        """Wait until so many further requests were answered."""
        before = self.statuses.total()
        eventually(lambda: self.statuses.total() >= before + count, PATIENCE_S)

    def end(self) -> None:
        self.stop.set()
        for thread in self.threads:
            thread.join()

    def _run(self, client: int) -> None:
        sent = 0
        while not self.stop.wait(0.01):
            sent += 1
            body: dict[str, Any] = {"user": f"user {client} {sent}", "max_tokens": 16}
            if self.word:
                body["messages"] = [{"role": "user", "content": self.word}]
            if self.faults and sent % self.faults == 0:
                body["messages"] = FAIL
            try:
                status, _ = ask(self.url, **body)
            except OSError:
                eventually(self._alive, PATIENCE_S)
                status, _ = ask(self.url, **body)
            self.statuses[status] += 1

    def _alive(self) -> bool:
        with suppress(OSError):
            return call(f"{self.url}/health/ready")[0] == 200
        return False
