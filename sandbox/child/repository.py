"""Runs a task folder inside the sandbox: builds it, lets a solution act, and runs its tests.

This text is sent to the sandbox as a program. TASK has files, solution, tests, workdir,
environment, runs, solve and test. The task's absolute paths lie below ROOT there.
"""

from __future__ import annotations

import base64
import contextlib
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import unittest
from collections.abc import Mapping
from pathlib import Path
from typing import Any

TASK: dict[str, Any] = {}
ROOT = Path("/scratch/r")
FOLDERS = r"app|tests|solution|logs|workspace|home|root|data|opt|srv|var|mnt|oracle|task|repo|"
FOLDERS += r"outputs?|results?|inputs?|src|testbed"
ABSOLUTE = re.compile(r"(?<![\w./$}~-])/(?=(?:" + FOLDERS + r")\b)")
RUNNER = """while [ $# -gt 0 ] && [ "$1" != pytest ]; do shift; done; "$@"\n"""
# Installers and the network do nothing here.
TOOLS = {
    **dict.fromkeys(("apt-get", "apt", "pip", "pip3", "curl", "wget"), "exit 0\n"),
    "sudo": '"$@"\n', "python": 'exec python3 "$@"\n', "awk": 'exec mawk "$@"\n', "uvx": RUNNER,
    "python3": '[ "${1-} ${2-}" = "-m pip" ] || exec "$RATCHET_PYTHON" "$@"\n',
    "pytest": 'exec "$RATCHET_PYTHON" -m pytest -p no:cacheprovider "$@"\n',
}  # fmt: skip
TOOLS["uv"] = f'[ "${{1-}}" = run ] || exit 0\n{RUNNER}'
LACKING = re.compile(r"[\w./-]+: command not found|No module named '?[\w.]+'?|: not found$", re.M)
SESSIONS: list[int] = []  # of what was started for the attempt
CLOCKS = ("UTC", "Asia/Kolkata", "America/Los_Angeles", "Pacific/Kiritimati")
NOISE = re.compile(r"^(=+|-+|PASSED|\s*$)|warning|short test summary", re.I)


def packages() -> str:
    spec = importlib.util.find_spec("pytest")
    return str(Path(spec.origin).parent.parent) if spec and spec.origin else ""


def placed(path: str) -> Path:
    """Return where an absolute path of the task lies here."""
    return ROOT / os.path.normpath(f"/{path}").lstrip("/")


def put(files: Mapping[str, str], below: str) -> None:
    for path, data in files.items():
        place = placed(f"{below}/{path}")
        place.parent.mkdir(parents=True, exist_ok=True)
        content = base64.b64decode(data)
        if b"\0" not in content:
            content = rewritten(content.decode("utf-8", "surrogateescape")).encode(
                "utf-8", "surrogateescape"
            )
        place.write_bytes(content)
        place.chmod(0o755)


def rewritten(text: str) -> str:
    return ABSOLUTE.sub(f"{ROOT}/", text)


def shell(script: str, seed: int = 0) -> tuple[int, str]:
    """Run a script in the task's working folder; return its exit status and what it printed."""
    file = Path("/scratch/run.sh")
    file.write_text(script)
    environment = {
        "PATH": "/scratch/bin:/usr/bin:/bin", "HOME": str(ROOT / "root"), "LANG": "C.UTF-8",
        "RATCHET_PYTHON": sys.executable, "PYTHONPATH": packages(),
        "TEST_DIR": str(ROOT / "tests"), "PYTHONHASHSEED": str(seed),
        "TZ": CLOCKS[seed % len(CLOCKS)],
        "PYTHONDONTWRITEBYTECODE": "1", **{k: rewritten(v) for k, v in TASK["environment"].items()},
    }  # fmt: skip
    workdir = placed(TASK["workdir"])
    workdir.mkdir(parents=True, exist_ok=True)
    with Path("/scratch/said").open("w+b") as out:  # a pipe would wait for what it leaves running
        run = subprocess.Popen(
            ["bash", str(file)], cwd=workdir, env=environment, stdin=subprocess.DEVNULL,
            stdout=out, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        SESSIONS.append(run.pid)
        code = run.wait()
        out.seek(0)
        return code, out.read(1 << 20).decode("utf-8", "replace")


def build(case: unittest.TestCase) -> None:
    for session in SESSIONS:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(session, signal.SIGKILL)
    SESSIONS.clear()
    shutil.rmtree(ROOT, ignore_errors=True)
    Path("/scratch/bin").mkdir(exist_ok=True)
    for name, script in TOOLS.items():
        tool = Path("/scratch/bin") / name
        tool.write_text(f"#!/bin/bash\n{script}")
        tool.chmod(0o755)
    for folder in ("logs/verifier", "root/.local/bin", "tests", "app", "var/log", "var/tmp"):
        (ROOT / folder).mkdir(parents=True, exist_ok=True)
    (ROOT / "root/.local/bin/env").write_text("")
    put(TASK["files"], "/")
    if TASK["pytest"] and not packages():
        case.fail("cannot run: pytest is not installed beside Ratchet")
    for line in TASK["runs"]:
        code, said = shell(rewritten(line))
        if code:
            case.fail(
                f"cannot run: a RUN line of the Dockerfile fails here: {last(said) or line[:80]}"
            )


def solve() -> tuple[int, str]:
    put(TASK["solution"], "/solution")
    code, said = shell(rewritten(f"bash /solution/{TASK['solve']}"))
    shutil.rmtree(ROOT / "solution", ignore_errors=True)
    return code, said


def reward(seed: int = 0) -> tuple[float, str]:
    """Run the tests. Return the reward and the last telling line that they printed."""
    shutil.rmtree(ROOT / "tests", ignore_errors=True)
    put(TASK["tests"], "/tests")
    code, said = shell(rewritten(f"bash /tests/{TASK['test']}"), seed)
    result = ROOT / "logs/verifier/reward.txt"
    values = result.with_suffix(".json")
    try:
        if result.exists():
            return float(result.read_text().strip() or 0), last(said)
        if values.exists():
            return min(map(float, json.loads(values.read_text()).values())), last(said)
    except (ValueError, TypeError, AttributeError):
        return 0.0, "the reward file holds no number"
    if TASK["kind"] == "terminal-bench":
        return float(code == 0 and " passed" in said), last(said)
    return 0.0, f"no reward was written; {last(said)}"


def last(said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if not NOISE.search(line)]
    telling = [line for line in lines if line.startswith(("E  ", "FAILED", "ERROR"))]
    return (telling or lines or [""])[-1][:200].replace(str(ROOT), "")


# Files that a test runner, Python, a shell or Git loads unasked: only the image's own count.
UNASKED = re.compile(
    r"(?:^|/)(?:conftest\.py|(?:site|user)customize\.py|[^/]*\.pth|\.?pytest\.(?:ini|toml)|tox\.ini"
    r"|setup\.cfg|pyproject\.toml|(?:site|dist)-packages/.*|__pycache__/.*|\.git/(?:hooks/.*|info/.*"
    r"|config[^/]*))$|^(?:tests|logs|solution|root/\.[^/]*|root/bin)/|^root/\.[^/]*$"
)
RUNNERS = {"pytest", "_pytest", "py", "pluggy", "iniconfig", "packaging", "pygments"}


def all_files() -> dict[str, bytes]:
    """Return the plain files of the task, by their paths below ROOT."""
    every = (path for path in ROOT.rglob("*") if path.is_file() and not path.is_symlink())
    return {str(path.relative_to(ROOT)): path.read_bytes() for path in every}


def unasked(path: str) -> bool:
    """Whether a file may be loaded without being named: also a module of the working folder that
    hides one of the standard library or of the test runner.
    """
    folder = Path(os.path.normpath(f"/{TASK['workdir']}").lstrip("/"))
    inner = Path(path).parts[len(folder.parts) :]
    hides = Path(path).is_relative_to(folder) and bool(inner)
    name = inner[0].removesuffix(".py") if hides else ""
    return bool(UNASKED.search(path)) or name in RUNNERS | sys.stdlib_module_names


def wipe() -> None:
    """Remove everything that the answer could write. Raises OSError if something withstands."""
    scratch = ROOT.parent
    subprocess.run(["/bin/chmod", "-R", "u+rwx", str(scratch)], check=False)
    for path in scratch.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def judged(case: unittest.TestCase, task: dict[str, Any]) -> None:
    """Let the answer act, then run the tests on its files alone, in a restored image."""
    TASK.update(task)
    build(case)
    before = all_files()
    code, _ = solve()
    if os.getppid() == 1:  # in a namespace of its own: nothing else has this uid
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)
    after = all_files()
    wipe()
    build(case)
    for path in before.keys() - after.keys():
        if not unasked(path):
            (ROOT / path).unlink(missing_ok=True)
    for path, data in after.items():
        if before.get(path) != data and not unasked(path):
            (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
            (ROOT / path).write_bytes(data)
            (ROOT / path).chmod(0o755)
    value, _ = reward()
    if value < 1:
        case.fail(f"reward {value:g}" + (f"; the program left with status {code}" if code else ""))
