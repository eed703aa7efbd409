"""Replies on disk, a JSON line each, by the hash of what was asked: a pass that is killed asks nothing twice."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from artifacts.hashing import hash_data
from problems.json_lines import JsonLines


class NoReply(RuntimeError):
    """This question has no answer; the others go on."""


class Refused(NoReply):
    """The server calls the question wrong."""


class NoRoom(Refused):
    """The question leaves no room for an answer within the model's positions."""


class EndpointDown(RuntimeError):
    """The endpoint cannot be used at all: what was answered so far is in the journal, so run again."""


@dataclass(frozen=True)
class Reply:
    """What came back, and the tokens that it cost (0 where the server does not say). The journal keeps these two."""

    text: str
    tokens: int = 0
    written: int = 0  # of the tokens, those of the answer
    ended: str = ""  # "stop", "length", or what else the server calls it
    model: str = ""  # who answered, in the server's words
    fingerprint: str = ""  # of its weights or its build


class Asks(Protocol):
    """What answers: an endpoint, or the journal in front of it. Raises NoReply and EndpointDown."""

    def ask(self, question: Mapping[str, Any]) -> Reply: ...


class Replies:
    """Held by one process at a time; its threads may ask at once. A torn last line is cut off."""

    def __init__(self, path: Path, endpoint: Asks) -> None:
        self.path, self.endpoint = path, endpoint
        self.known: dict[str, Reply] = {}
        self.used: dict[str, Reply] = {}  # of this pass, found or asked for
        self._lock = threading.Lock()
        self._lines = JsonLines(path)

    def __enter__(self) -> Replies:
        self._lines.open(self._read, "remove the line: its question is asked again")
        return self

    def _read(self, row: dict[str, Any]) -> None:
        self.known[row["question"]] = Reply(row["text"], row["tokens"])

    def ask(self, question: Mapping[str, Any]) -> Reply:
        """The reply that is known, else the endpoint's, which is on disk before anybody sees it. Raises what the endpoint raises."""
        key = hash_data(question)
        reply = self.known.get(key) or self.endpoint.ask(question)
        with self._lock:
            if key not in self.known:
                self._lines.append([{"question": key, "text": reply.text, "tokens": reply.tokens}])
                self.known[key] = reply
            self.used[key] = reply
        return reply

    @property
    def content_hash(self) -> str:
        """Of the replies that this pass used: with the inputs and the config they decide what comes out."""
        return hash_data(sorted([key, reply.text] for key, reply in self.used.items()))

    def __exit__(self, *_: object) -> None:
        self._lines.close()
