"""Runs one task folder inside the sandbox: builds it, lets a solution act, and runs its tests.

This text is sent to the sandbox as the program of a job, with a line that fills TASK: files,
solution, tests, workdir, environment, runs, solve, test and more. The task's absolute paths lie
below ROOT there.
"""

from __future__ import annotations

import ast
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
from collections.abc import Callable, Mapping
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


def alive(session: int) -> bool:
    try:
        os.killpg(session, 0)
    except ProcessLookupError:
        return False
    return True


def files() -> dict[Path, bytes]:
    every = (path for path in ROOT.rglob("*") if path.is_file() and not path.is_symlink())
    skipped = ("tests", "logs", "root", "var")
    return {
        path: path.read_bytes() for path in every if path.relative_to(ROOT).parts[0] not in skipped
    }


def made() -> tuple[dict[Path, bytes], int, str]:
    """Return what a solution changed: path -> content, without what it removed."""
    before = files()
    code, said = solve()
    return {path: data for path, data in files().items() if before.get(path) != data}, code, said


def solution(case: unittest.TestCase) -> None:
    _, code, said = made()
    value, why = reward()
    TASK["passed"] = value >= 1
    if value < 1:
        lacking = LACKING.search(f"{said}\n{why}")
        if lacking:
            case.fail(f"cannot run: the sandbox lacks it: {lacking[0]}")
        case.fail(
            f"reward {value:g}; {why or last(said)}"
            + (f"; solve exits {code}: {last(said)}" if code else "")
        )


def again(case: unittest.TestCase) -> None:
    """Run the tests again on what `solution` left, with other hash seeds and time zones."""
    values = [reward(seed) for seed in range(1, TASK["repeats"] + 1)]
    passed = sum(value >= 1 for value, _ in values)
    if not passed and not TASK.get("passed"):
        case.fail("cannot run: the solution does not pass")
    if 0 < passed < len(values) or not passed:
        why = next(why for value, why in values if value < 1)
        case.fail(f"{passed} of {len(values)} further runs pass; {why}")


def refused(case: unittest.TestCase, what: str) -> None:
    value, _ = reward()
    if value >= 1:
        case.fail(f"reward {value:g} for {what}")


def nothing(case: unittest.TestCase) -> None:
    refused(case, "doing nothing")


def plants(case: unittest.TestCase) -> None:
    """Leave files that a test runner might load, and a reward, without solving anything."""
    hook = (
        "import pytest\n\n\n@pytest.hookimpl(hookwrapper=True)\n"
        "def pytest_runtest_makereport(item, call):\n"
        "    outcome = yield\n    outcome.get_result().outcome = 'passed'\n"
    )
    for folder in {placed(TASK["workdir"]), ROOT / "app", ROOT / "root"}:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "conftest.py").write_text(hook)
        (folder / "pytest.py").write_text("print('1 passed')\n")
    (ROOT / "logs/verifier/reward.txt").write_text("1\n")
    refused(case, "conftest.py, pytest.py and reward.txt, planted by the model")


def altered(case: unittest.TestCase, change: Callable[[Path, str], str], what: str) -> str:
    outputs, _, _ = made()
    if any(alive(session) for session in SESSIONS):
        case.skipTest("what the solution left running does not read its files again")
    changed = 0
    for path, data in outputs.items():
        try:
            text = data.decode()
            new = change(path, text)
        except (UnicodeDecodeError, ValueError, SyntaxError, RecursionError):
            continue
        if new != text:
            path.write_text(new)
            changed += 1
    if not changed:
        case.skipTest("nothing to change")
    return f"{what} ({changed} files)"


def empty(case: unittest.TestCase) -> None:
    refused(case, altered(case, lambda path, text: "", "empty output files"))


def numbers(case: unittest.TestCase) -> None:
    def change(path: Path, text: str) -> str:
        if path.suffix in (".py", ".sh"):
            raise ValueError
        return re.sub(r"(?<![\w.])\d+", lambda match: str(int(match[0]) + 7), text)

    refused(case, altered(case, change, "outputs with other numbers"))


def header(case: unittest.TestCase) -> None:
    def change(path: Path, text: str) -> str:
        lines = text.splitlines(keepends=True)
        if path.suffix in (".py", ".sh") or len(lines) < 3:
            raise ValueError
        return "".join(lines[: (len(lines) + 1) // 2])

    refused(case, altered(case, change, "the first half of the outputs"))


def hollow(case: unittest.TestCase) -> None:
    def change(path: Path, text: str) -> str:
        tree = ast.parse(text) if path.suffix == ".py" else None
        for node in ast.walk(tree) if tree else ():
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                node.body = [ast.Return(ast.Constant(None))]
        return ast.unparse(ast.fix_missing_locations(tree)) if tree else text

    refused(case, altered(case, change, "functions that return None"))


def otherwise(case: unittest.TestCase) -> None:
    def change(path: Path, text: str) -> str:
        if path.suffix == ".json" and not TASK["exact"]:
            value = json.loads(text)
            packed = json.dumps(value, separators=(",", ":"))
            return packed if packed != text.strip() else json.dumps(value, indent=3)
        return ast.unparse(ast.parse(text)) + "\n" if path.suffix == ".py" else text

    what = altered(case, change, "the solution's outputs in another layout")
    value, why = reward()
    if value < 1:
        case.fail(f"reward {value:g} for {what}; {why}")
