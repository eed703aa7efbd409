from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from sandbox.backends.local import IsolationError
from sandbox.protocol import Job, Report
from sandbox.sandbox import Sandbox, SandboxConfig, run_all

Judge = Callable[[Job], Report]


@pytest.fixture(scope="session", params=["root", "userns", "bare"])
def level(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """A sandbox for each isolation level; skipped, with the reason, if the machine refuses it."""
    try:
        opened = Sandbox(SandboxConfig(workers=1, isolation=request.param)).__enter__()
    except IsolationError as refused:
        pytest.skip(str(refused))
    yield opened
    opened.close()


@pytest.fixture
def judge(sandbox: Sandbox) -> Judge:
    return lambda job: run_all(sandbox, [job])[0]
