"""Tests see neither the settings nor the home folder of the person who runs them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# A slow machine must not fail a property test: no deadline, and examples that are large or slow to
# generate are accepted.
settings.register_profile(
    "busy machine",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("busy machine")

OURS = (
    "RATCHET_HOME",
    "RATCHET_PROFILE",
    "RATCHET_UNVERIFIED",
    "RATCHET_SET",
    "DAGSTER_HOME",
    "RAY_ADDRESS",
    "MLFLOW_TRACKING_URI",
    "WANDB_API_KEY",
)


@pytest.fixture(scope="session", autouse=True)
def no_settings_from_outside() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name in OURS:
            patch.delenv(name, raising=False)
        yield
