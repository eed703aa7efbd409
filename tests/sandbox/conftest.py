from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from sandbox.protocol import Job, Report
from sandbox.sandbox import Sandbox, SandboxConfig, run_all

Judge = Callable[[Job], Report]


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(SandboxConfig(workers=2)) as opened:
        yield opened


@pytest.fixture
def judge(sandbox: Sandbox) -> Judge:
    return lambda job: run_all(sandbox, [job])[0]
