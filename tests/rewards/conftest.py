from __future__ import annotations

from collections.abc import Iterator

import pytest

from sandbox.sandbox import Sandbox, SandboxConfig


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(SandboxConfig(workers=2)) as opened:
        yield opened
