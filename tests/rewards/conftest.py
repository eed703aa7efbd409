from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings

from sandbox.sandbox import Sandbox, SandboxConfig

settings.register_profile("no deadline", deadline=None)  # a loaded machine is no failure of a property
settings.load_profile("no deadline")


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(SandboxConfig(workers=2)) as opened:
        yield opened
