"""A version of the model, as records name it, and when they were written."""

from __future__ import annotations

from datetime import UTC, datetime

from pydantic import BaseModel, ConfigDict

from artifacts.store import Artifact


class ModelVersion(BaseModel):
    """A version of the model: its checkpoint's name, the hash of its weights, and its folder."""

    model_config = ConfigDict(frozen=True)

    checkpoint: str
    content_hash: str
    path: str  # in the database relative to the home

    @classmethod
    def of_artifact(cls, checkpoint: str, weights: Artifact) -> ModelVersion:
        return cls(checkpoint=checkpoint, content_hash=weights.content_hash, path=str(weights.path))


def now() -> str:
    """Return the time in UTC, to the second, in ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")
