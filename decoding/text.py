"""The text of a growing list of tokens, in pieces that never have to be taken back.

In: token ids, one by one. Out: text. A piece is held back while it may be the beginning of a stop
string, or half of a character.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class TextStream:
    """The text of a completion, token by token.

    tokenizer: of transformers, with a fast backend. stop: strings that end the text; they are not
    part of it.
    """

    def __init__(self, tokenizer: Any, stop: Sequence[str] = ()) -> None:
        from tokenizers.decoders import DecodeStream

        self._backend = tokenizer.backend_tokenizer
        self._decoder = DecodeStream(skip_special_tokens=True)
        self._tokens: list[int] = []
        self._decoded = self._returned = 0  # characters
        self._held = ""
        self._stop = tuple(stop)
        self.stopped = False

    def add(self, token: int) -> str:
        """Add a token; return the text that is certain now."""
        self._tokens.append(token)
        piece = self._decoder.step(self._backend, token)
        return self._pass(piece) if piece else ""

    def finish(self) -> str:
        """Return the rest: what was held back, and half characters as U+FFFD."""
        if self.stopped:
            return ""
        whole = self._backend.decode(self._tokens, skip_special_tokens=True)
        rest = self._pass(whole[self._decoded :])
        if self.stopped:
            return rest
        held, self._held = self._held, ""
        return rest + held

    def _pass(self, piece: str) -> str:
        self._decoded += len(piece)
        if not self._stop:
            return piece
        text = self._held + piece
        if (kept := before_stop(text, self._stop)) != text:
            self.stopped, self._held = True, ""
            return kept
        certain = len(text) - max(_overlap(text, stop) for stop in self._stop)
        self._held = text[certain:]
        return text[:certain]


def _overlap(text: str, stop: str) -> int:
    """Return the length of the longest end of the text that is a beginning of `stop`."""
    return next(
        (n for n in range(min(len(stop) - 1, len(text)), 0, -1) if text.endswith(stop[:n])), 0
    )


def before_stop(text: str, stop: Sequence[str]) -> str:
    """Return the text up to the first stop word."""
    return text[: min((at for word in stop if (at := text.find(word)) >= 0), default=len(text))]
