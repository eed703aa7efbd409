"""Another process that holds a home's training lease."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from resources.lease import LeasePlace

ROOT = Path(__file__).parents[1]
CODE = """
import sys
from pathlib import Path
from resources import lease
from resources.home import Home
lease.TERM_S, lease.RENEW_S = 2.0, 0.2
home = Home(Path(sys.argv[1]), sys.argv[2])
lease.take(home.lease, sys.argv[3])
print("has it", flush=True)
for action in sys.stdin:
    try:
        exec(action)
        print("done", flush=True)
    except Exception as error:
        print(type(error).__name__, flush=True)
"""


@contextmanager
def holding(lease: LeasePlace, run_id: str = "chain-0001") -> Iterator[subprocess.Popen[str]]:
    """Yield a process that holds the lease, renews it each 0.2 s, and runs lines of Python from its
    standard input; it is killed at the end.
    """
    url = "" if isinstance(lease.place, Path) else lease.place
    command = [sys.executable, "-c", CODE, str(lease.home), url, run_id]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        try:
            assert process.stdout
            assert process.stdout.readline() == "has it\n"
            yield process
        finally:
            process.kill()
