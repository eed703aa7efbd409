"""Programs that every harness can judge, from the public data beside the clone (RATCHET_DATA names
another place).
"""

from __future__ import annotations

import gzip
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sandbox.protocol import AssertTest, CallTest, Job, Limits, StdioTest
from sandbox.wire import decode
from sandbox.worker.literal import claims

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("RATCHET_DATA", ROOT.parent / "shared" / "data"))
CUTS = ("\nclass", "\ndef", "\n#", "\nif", "\nprint")  # where Chen et al. end a completion


@dataclass(frozen=True)
class Program:
    """One program of a problem: `test` defines check(candidate), `cases` are the same as [args,
    expected] where it says no more than that.
    """

    name: str
    source: str
    entry: str = ""
    test: str = ""
    cases: tuple[tuple[list[Any], Any], ...] | None = None
    stdin: str = ""
    stdout: str = ""

    def message(self) -> dict[str, Any]:
        return asdict(self)

    def job(self, style: str, limits: Limits | None = None) -> Job:
        limits = limits or Limits()
        if style == "assert":
            return Job(
                self.name,
                self.source,
                "assert",
                (AssertTest(self.test),),
                self.entry,
                limits=limits,
            )
        if style == "stdio":
            return Job(
                self.name,
                self.source,
                "stdio",
                (StdioTest(self.stdin, self.stdout),),
                limits=limits,
            )
        return Job(
            self.name,
            self.source,
            "call",
            tuple(CallTest(tuple(args), {}, want) for args, want in self.cases or ()),
            self.entry,
            limits=limits,
        )


def humaneval() -> list[Program]:
    """All 164, each with its canonical solution."""
    return [
        _program(row, row["task_id"], row["canonical_solution"])
        for row in _lines("humaneval/HumanEval.jsonl.gz")
    ]


def codet() -> list[Program]:
    """The 16,400 published samples of CodeGen-Mono-16B, task by task."""
    tasks = {row["task_id"]: row for row in _lines("humaneval/HumanEval.jsonl.gz")}
    rows = _lines(
        "codet_samples/HumanEval_codegen16B_temp0.8_topp0.95_num100_max300_code_solution.jsonl.gz"
    )
    made = []
    for task, row in zip(sorted(tasks), rows, strict=True):
        for at, sample in enumerate(row["samples"]):
            made.append(_program(tasks[task], f"{task}#{at}", _cut(sample)))
    return made


def codecontests() -> list[Program]:
    """Solutions with the first of their tests: one run each. Not all of them are right."""
    rows = _lines("codecontests/codecontests_300_problems.jsonl")
    return [
        Program(
            row["id"],
            row["solution"],
            stdin=row["tests"][0]["input"],
            stdout=row["tests"][0]["output"],
        )
        for row in rows
    ]


def _program(row: dict[str, Any], name: str, completion: str) -> Program:
    return Program(
        name, row["prompt"] + completion + "\n", row["entry_point"], row["test"], _cases(row)
    )


def _cases(row: dict[str, Any]) -> tuple[tuple[list[Any], Any], ...] | None:
    """Arguments and results, where both are JSON's own, so that all harnesses take them."""
    found = claims(row["test"], row["entry_point"])
    if not found or any(
        claim.how != "equal" or '{"' in (claim.call + claim.want).replace('{"d":[]}', "")
        for claim in found
    ):
        return None
    return tuple((decode(claim.call)[0], decode(claim.want)) for claim in found)


def _cut(completion: str) -> str:
    return (
        completion[: min(at for stop in CUTS if (at := completion.find(stop)) >= 0)]
        if any(stop in completion for stop in CUTS)
        else completion
    )


def _lines(name: str) -> list[dict[str, Any]]:
    path = DATA / name
    if not path.exists():
        raise SystemExit(f"no {path}: set RATCHET_DATA to the folder that holds it")
    data = path.read_bytes()
    return [
        json.loads(line)
        for line in (gzip.decompress(data) if path.suffix == ".gz" else data).splitlines()
    ]
