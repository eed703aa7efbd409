"""A journal of replies, one JSON line each, keyed by the hash of the request.

A pass that was killed repeats no request.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from artifacts.hashing import hash_data
from artifacts.json_lines import JsonLines


class NoReply(RuntimeError):
    """This request has no reply; other requests may continue."""


class RequestRefused(NoReply):
    """The server rejects the request as wrong."""


class ContextTooLong(RequestRefused):
    """The request leaves no room for a reply within the model's context."""


class EndpointDown(RuntimeError):
    """The endpoint cannot be used. Replies so far are in the journal, so run again."""


@dataclass(frozen=True)
class Reply:
    """A reply, and the tokens that it cost (0 if the server does not say).

    The journal stores only these two fields.
    """

    text: str
    tokens: int = 0
    written: int = 0  # completion tokens, a part of `tokens`
    ended: str = ""  # "stop", "length", or another word of the server
    model: str = ""  # model name as the server reports it
    fingerprint: str = ""  # fingerprint of its weights or its build


class ReplySource(Protocol):
    """An endpoint, or the journal in front of one. Raises NoReply and EndpointDown."""

    def ask(self, request: Mapping[str, Any]) -> Reply: ...


class Replies:
    """The journal. One process holds it at a time; its threads may call `ask` concurrently.

    A torn last line is cut off.
    """

    def __init__(self, path: Path, endpoint: ReplySource) -> None:
        self.path, self.endpoint = path, endpoint
        self.known: dict[str, Reply] = {}
        self.used: dict[str, Reply] = {}  # used in this pass, from the journal or the endpoint
        self._lock = threading.Lock()
        self._lines = JsonLines(path)

    def __enter__(self) -> Replies:
        self._lines.open(self._read, "remove the line: its request is sent again")
        return self

    def _read(self, row: dict[str, Any]) -> None:
        self.known[row["question"]] = Reply(row["text"], row["tokens"])

    def ask(self, request: Mapping[str, Any]) -> Reply:
        """Return the reply from the journal, else from the endpoint.

        A new reply is written to disk before it is returned. Raises what the endpoint raises.
        """
        key = hash_data(request)
        reply = self.known.get(key) or self.endpoint.ask(request)
        with self._lock:
            if key not in self.known:
                self._lines.append([{"question": key, "text": reply.text, "tokens": reply.tokens}])
                self.known[key] = reply
            self.used[key] = reply
        return reply

    @property
    def content_hash(self) -> str:
        """Hash of the replies used in this pass.

        With the inputs and the config, they determine the result.
        """
        return hash_data(sorted([key, reply.text] for key, reply in self.used.items()))

    def __exit__(self, *_: object) -> None:
        self._lines.close()
