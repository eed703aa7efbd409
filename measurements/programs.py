"""Programs from public data that every harness can judge. `RATCHET_DATA` names its folder."""

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
STOPS = ("\nclass", "\ndef", "\n#", "\nif", "\nprint")  # stop sequences of Chen et al. 2021


@dataclass(frozen=True)
class Program:
    """A program with the tests of its problem.

    test: source that defines check(candidate). cases: the same tests as (arguments, expected), or
    None where `test` is more than a list of calls.
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
            tuple(CallTest(tuple(args), {}, expected) for args, expected in self.cases or ()),
            self.entry,
            limits=limits,
        )


def humaneval() -> list[Program]:
    """Return the 164 canonical solutions of HumanEval."""
    return [
        _program(row, row["task_id"], row["canonical_solution"])
        for row in _lines("humaneval/HumanEval.jsonl.gz")
    ]


def codet() -> list[Program]:
    """Return CodeT's 16,400 published samples of CodeGen-Mono-16B on HumanEval, sorted by task."""
    tasks = {row["task_id"]: row for row in _lines("humaneval/HumanEval.jsonl.gz")}
    rows = _lines(
        "codet_samples/HumanEval_codegen16B_temp0.8_topp0.95_num100_max300_code_solution.jsonl.gz"
    )
    return [
        _program(tasks[task], f"{task}#{number}", _truncate(sample))
        for task, row in zip(sorted(tasks), rows, strict=True)
        for number, sample in enumerate(row["samples"])
    ]


def codecontests() -> list[Program]:
    """Return CodeContests' solutions, each with its first test only. Some solutions are wrong."""
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
    """Return (arguments, expected) per test, or None if a value has no JSON type, which some
    harnesses cannot read.
    """
    calls = claims(row["test"], row["entry_point"])
    if not calls or any(
        claim.how != "equal" or '{"' in (claim.call + claim.want).replace('{"d":[]}', "")
        for claim in calls
    ):
        return None
    return tuple((decode(claim.call)[0], decode(claim.want)) for claim in calls)


def _truncate(completion: str) -> str:
    """Return the completion up to its first stop sequence."""
    ends = [at for stop in STOPS if (at := completion.find(stop)) >= 0]
    return completion[: min(ends, default=len(completion))]


def _lines(name: str) -> list[dict[str, Any]]:
    path = DATA / name
    if not path.exists():
        raise SystemExit(f"no {path}: set RATCHET_DATA to the folder that holds it")
    data = path.read_bytes()
    return [
        json.loads(line)
        for line in (gzip.decompress(data) if path.suffix == ".gz" else data).splitlines()
    ]
