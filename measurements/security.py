"""Whom the security constraint punishes: `python -m measurements.security [--isolation LEVEL]
[--only NAME] [--each]`.

Reference solutions of published sets, of which none should be punished, and hostile programs.
*Punished*: the whole reward is -1, because the sandbox saw an attempt. *Hinted*: the text has names
that no task needs, which costs a little. `--each` names the references that are punished or hinted,
and the hostile programs that are not punished. `RATCHET_DATA` and `RATCHET_HOSTILE` name the
folders of both.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from problems.schema import Problem
from problems.sources.registry import load
from rewards.lint import lint
from rewards.security import security
from sandbox.judge import job_of
from sandbox.protocol import Job, Verdict
from sandbox.sandbox import Sandbox, SandboxConfig, run_all

SHARED = Path(__file__).resolve().parents[1].parent / "shared"
DATA = Path(os.environ.get("RATCHET_DATA", SHARED / "data"))
HOSTILE = Path(os.environ.get("RATCHET_HOSTILE", SHARED / "hostile"))
SETS = {
    "HumanEval+": ("humanevalplus", "humanevalplus/HumanEvalPlus.jsonl.gz"),
    "MBPP+": ("mbppplus", "mbppplus/MbppPlus.jsonl.gz"),
    "MBPP": ("mbpp", "mbpp/mbpp.jsonl"),
    "LeetCode, train": ("leetcode_train", "leetcode/LeetCodeDataset-v0.1.0-train.jsonl.gz"),
    "LeetCode, test": ("leetcode", "leetcode/LeetCodeDataset-v0.3.1-test.jsonl.gz"),
    "CodeContests": ("codecontests", "codecontests/codecontests_300_problems.jsonl"),
    "BigCodeBench": ("bigcodebench", "bigcodebench/BigCodeBench.jsonl.gz"),
}
FAMILIES = {"H": "reward hacks", "C": "containment attacks", "control": "honest controls"}
AT_ONCE = 400


def references(source: str, path: str, tests: int) -> list[tuple[Problem, Job]]:
    """The first solution of each problem, with as many of its tests."""
    problems = [problem for problem in load(source, DATA / path).problems if problem.solutions]
    jobs = [
        (problem, problem.job(problem.solutions[0], problem.problem_id)) for problem in problems
    ]
    return [(problem, replace(job, tests=job.tests[:tests])) for problem, job in jobs]


def hostile() -> Iterator[tuple[str, Job]]:
    """Programs of both corpora with the name of their group."""
    problems = json.loads((HOSTILE / "problems.json").read_text())
    for entry in json.loads((HOSTILE / "manifest.json").read_text()):
        source = (HOSTILE / "programs" / entry["file"]).read_bytes().decode("utf-8")
        yield (
            f"round 1, {FAMILIES[entry['family']]}",
            job_of(problems[entry["problem"]], source, f"{entry['file']}: {entry['attack']}"),
        )
    victim = tempfile.mkdtemp(prefix="victim-")
    (Path(victim) / "file").write_text("x")
    for line in (HOSTILE / "round2" / "programs.jsonl").read_text().splitlines():
        row = json.loads(line)
        if row["problem"] and not row.get("slow"):
            source = (
                row["source"].replace("VICTIM_FILE", f"{victim}/file").replace("VICTIM_DIR", victim)
            )
            yield (
                f"round 2, {'attacks' if row['kind'] == 'attack' else 'honest'}",
                job_of(row["problem"], source, row["name"]),
            )


class Count:
    """Of one group of programs."""

    def __init__(self) -> None:
        self.programs, self.failed, self.blind = 0, 0, 0
        self.punished: list[str] = []
        self.hinted: list[str] = []
        self.spared: list[str] = []

    def add(self, sandbox: Sandbox, pairs: Sequence[tuple[Problem | None, Job]]) -> None:
        jobs = [job for _, job in pairs]
        for (task, job), report, findings in zip(
            pairs, run_all(sandbox, jobs), lint([job.source for job in jobs]), strict=True
        ):
            if report.verdict is Verdict.INFRA:
                self.failed += 1
                continue
            self.programs += 1
            self.blind += report.tried is None
            worth = security(report, findings, task) or 0.0
            told = f"{job.job_id[:110]} ({report.verdict}) {report.tried}"
            (self.punished if worth == -1.0 else self.spared).append(told)
            if -1.0 < worth < 1.0:
                self.hinted.append(f"{told} {findings.dangers if findings else 'cannot be read'}")

    def row(self, name: str) -> str:
        return (
            f"| {name} | {self.programs} | {len(self.punished)} | {len(self.hinted)} | "
            f"{self.failed} | {self.blind} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--isolation", choices=("auto", "root", "userns", "bare"), default="auto")
    parser.add_argument(
        "--tests",
        type=int,
        default=3,
        help="of each reference; what a program tries does not depend on many",
    )
    parser.add_argument("--most", type=int, default=10_000, help="programs of each set")
    parser.add_argument("--each", action="store_true")
    parser.add_argument("--only", default="", help="of SETS, or `hostile`; all where empty")
    asked = parser.parse_args()
    counts: dict[str, Count] = {}
    print(
        "| programs | judged | punished | hinted | no verdict | attempts not counted |\n"
        "|---|---|---|---|---|---|"
    )
    with Sandbox(SandboxConfig(isolation=asked.isolation)) as sandbox:
        for name, (source, path) in SETS.items():
            if (DATA / path).exists() and asked.only in name:
                jobs = references(source, path, asked.tests)[: asked.most]
                for at in range(0, len(jobs), AT_ONCE):
                    counts.setdefault(name, Count()).add(sandbox, jobs[at : at + AT_ONCE])
                print(counts[name].row(name), flush=True)
        if HOSTILE.exists() and asked.only in "hostile":
            for name, job in hostile():  # one at a time: they are not to hurt each other
                counts.setdefault(name, Count()).add(sandbox, [(None, job)])
    for name, count in counts.items():
        if name not in SETS:
            print(count.row(name))
    for name, count in counts.items() if asked.each else ():
        honest = name in SETS or "honest" in name
        for told in (*count.punished, *count.hinted) if honest else count.spared:
            print(f"{name}: {told}")


if __name__ == "__main__":
    main()
