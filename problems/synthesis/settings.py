"""The settings of synthesis."""

from __future__ import annotations

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from artifacts.section import Section

SOURCE = "synthetic"  # of these problems, and their tag


class Synthesis(Section):
    """Problems that a language model proposes and solves.

    Off unless `endpoint` and `problems` are set.
    """

    endpoint: str = ""
    """Address of an OpenAI-compatible server up to /v1; empty: synthesis is off. The key is read
    from RATCHET_OPENAI_API_KEY or OPENAI_API_KEY.
    """
    model: str = ""
    """Model that proposes, by the server's name for it."""
    solver: str = ""
    """Model that solves; empty: the one that proposes."""
    problems: NonNegativeInt = 0
    """Problems wanted, before verification. The result may have a few more, because several
    proposals are in progress at once.
    """
    answers: PositiveInt = Field(4, ge=2)
    """Independent solutions per proposal."""
    temperature: NonNegativeFloat = 0.8
    """Sampling temperature for proposals and solutions."""
    max_tokens: PositiveInt = 1024
    """Maximum tokens of one reply."""
    requests: PositiveInt = 1000
    """Maximum number of requests. Requests answered in an earlier pass count, retries do not. They
    are sent four at a time.
    """
    tokens: PositiveInt = 2_000_000
    """Maximum tokens of all requests and replies, as the server counts them."""
    timeout_s: PositiveFloat = 120.0
    """Seconds without data from the server before a request times out."""

    @property
    def on(self) -> bool:
        return bool(self.endpoint and self.problems)
