"""Lint a batch of programs with one call of ruff: style offences, complexity, banned names.

ruff runs as its own process: a program that overflows its parser's stack then ends ruff, not the
trainer. Halving the batch finds that program.
Rules: https://docs.astral.sh/ruff/rules; complexity is McCabe's (1976, rule C901).
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rewards.text_programs import runs_text

STYLE = (
    "F",
    "E4",
    "E5",
    "E7",
    "W2",
    "B",
    "BLE",
    "C4",
    "ERA",
    "PIE",
    "PLC0132",
    "PLE25",
    "PLR01",
    "PLR09",
    "PLR1711",
    "PLR1722",
    "RET50",
    "SIM",
    "S110",
    "S112",
    "S307",
)
"""Rules that hold for any program.

None demands text (docstrings, annotations, headers): what cannot be missing cannot be padded.
"""
BANNED = (
    *(
        "ctypes",
        "_ctypes",
        "cffi",
        "pty",
        "socket",
        "_socket",
        "subprocess",
        "_posixsubprocess",
        "socketserver",
        "ftplib",
        "smtplib",
        "telnetlib",
    ),
    *(
        "urllib.request",
        "http.client",
        "http.server",
        "requests",
        "os.system",
        "os.popen",
        "os.posix_spawn",
        "os.posix_spawnp",
        "os.execv",
    ),
    *(
        "os.execve",
        "os.execvp",
        "os.execl",
        "os.execlp",
        "os.spawnl",
        "os.spawnv",
        "os.setuid",
        "os.chroot",
        "os.mknod",
        "os.killpg",
    ),
    *(
        "gc.get_objects",
        "gc.get_referrers",
        "sys._getframe",
        "sys._current_frames",
        "sys.settrace",
        "sys.setprofile",
        "inspect.currentframe",
    ),
)
"""Names that no task needs: other programs, the network, the interpreter's memory.

They only give hints; what decides is the attempts that the sandbox saw.
"""
SECURITY = "TID251"  # ruff's rule for BANNED
IGNORED = ("B006", "B008", "B905", "C408", "SIM105", "SIM108")
LONGEST_LINE = 150
OPTIONS = (
    "lint.mccabe.max-complexity=0",  # report every function with its complexity
    f"lint.pycodestyle.max-line-length={LONGEST_LINE}",
    "lint.flake8-tidy-imports.banned-api={"
    + ",".join(f'"{name}"={{msg="x"}}' for name in BANNED)
    + "}",
)
ALONE_S = 20.0
LONGEST = 100_000  # characters; no task here needs more
_COMPLEX = re.compile(r"\((\d+) > 0\)$")


@dataclass(frozen=True)
class Findings:
    """Findings for one program.

    Style offences, complexity of the worst function (0: no function), banned names, and whether
    `exec` runs text, in which nothing is found.
    """

    offences: int
    complexity: int
    dangers: tuple[str, ...]
    runs_text: bool = False


def lint(programs: Sequence[str]) -> list[Findings | None]:
    """Return the findings of each program.

    None stands for a program that ruff cannot read, or that is longer than LONGEST. `# noqa` and
    similar comments have no effect.
    Raises OSError where ruff itself is unavailable: a failure of ours, not of a program.
    """
    distinct = sorted(
        {program for program in programs if len(program) <= LONGEST},
        key=lambda text: text.encode("utf-8", "surrogatepass"),
    )
    findings = dict(zip(distinct, _batch(distinct), strict=True))
    return [findings.get(program) for program in programs]


def _batch(programs: list[str]) -> list[Findings | None]:
    if not programs:
        return []
    try:
        return _run(programs)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        if len(programs) == 1:
            return [None]
        # One program ends ruff: halve the batch until it is alone, so that no other is affected.
        middle = len(programs) // 2
        return [*_batch(programs[:middle]), *_batch(programs[middle:])]


def _run(programs: list[str]) -> list[Findings | None]:
    with tempfile.TemporaryDirectory(prefix="ratchet-lint-") as name:
        folder = Path(name).resolve()
        for index, program in enumerate(programs):
            (folder / f"p{index}.py").write_bytes(program.encode("utf-8", "surrogatepass"))
        completed = subprocess.run(
            [*_command(), str(folder)],
            capture_output=True,
            check=True,
            timeout=ALONE_S + 0.5 * len(programs),
        )
        rows: list[list[dict[str, str | None]]] = [[] for _ in programs]
        for row in json.loads(completed.stdout):
            rows[int(Path(row["filename"]).stem[1:])].append(row)
    return [_findings(*each) for each in zip(programs, rows, strict=True)]


def _findings(program: str, rows: list[dict[str, str | None]]) -> Findings | None:
    codes = [str(row["code"]) for row in rows]
    if any(row["code"] in (None, "invalid-syntax", "E902", "E999") for row in rows):
        return None
    complexities = [
        int(match[1])
        for row in rows
        if row["code"] == "C901" and (match := _COMPLEX.search(str(row["message"])))
    ]
    dangers = tuple(
        sorted({str(row["message"]).split("`")[1] for row in rows if row["code"] == SECURITY})
    )
    offences = sum(code not in ("C901", SECURITY) for code in codes)
    return Findings(offences, max(complexities, default=0), dangers, runs_text(program))


@cache
def _command() -> tuple[str, ...]:
    from ruff import find_ruff_bin

    options = [part for option in OPTIONS for part in ("--config", option)]
    select = ",".join((*STYLE, SECURITY, "C901"))
    flags = (
        "--isolated",
        "--no-cache",
        "--ignore-noqa",
        "--exit-zero",
        "--quiet",
        "--output-format=json",
        "--target-version=py311",
        "--no-respect-gitignore",
    )
    return (
        find_ruff_bin(),
        "check",
        *flags,
        f"--select={select}",
        f"--ignore={','.join(IGNORED)}",
        *options,
    )


@cache
def version() -> str:
    """Return ruff's version.

    It is part of a reward's hash, because another version may find other things.
    """
    from importlib.metadata import version as installed

    return installed("ruff")
