"""The interpreter and its forks continue in code that was moved to huge pages.

On a kernel without huge pages, nothing is moved.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

MOVES = """
import json, os
from sandbox.child import hugepages
moved = hugepages.move_code()
if not (pid := os.fork()):
    os._exit(len(json.loads(json.dumps(sorted("fork")))))
child = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
code = [line.split() for line in open("/proc/self/maps")]
anonymous = sum(row[1] == "r-xp" and len(row) == 5 for row in code)
print(json.dumps([moved, child, anonymous, any("wx" in row[1] for row in code)]))
"""


def test_the_interpreter_and_its_forks_run_in_moved_code() -> None:
    completed = subprocess.run(
        [sys.executable, "-c", MOVES],
        capture_output=True,
        text=True,
        cwd=Path(__file__).resolve().parents[2],
    )
    assert completed.returncode == 0, completed.stderr
    moved, child, anonymous, writable = json.loads(completed.stdout)
    assert child == 4 and not writable
    assert anonymous == (moved > 0) and moved % (2 << 20) == 0
