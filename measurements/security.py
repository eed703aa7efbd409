"""Programs that the security constraint punishes, among reference solutions and hostile programs.

    python -m measurements.security [--isolation LEVEL] [--only NAME] [--each]

No reference solution of a published set should be punished. *Punished*: the reward is -1, because
the sandbox recorded an attempt. *Hinted*: the program's text has names that no task needs, which
lowers the score slightly. `--each` lists punished and hinted references, and hostile programs that
are not punished. `RATCHET_DATA` and `RATCHET_HOSTILE` name the folders of the programs.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from problems.registry import load
from problems.schema import Problem
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
BATCH = 400


def references(source: str, path: str, tests: int) -> list[tuple[Problem, Job]]:
    """Return each problem with a job: its first solution and its first `tests` tests."""
    problems = [problem for problem in load(source, DATA / path).problems if problem.solutions]
    jobs = [
        (problem, problem.job(problem.solutions[0], problem.problem_id)) for problem in problems
    ]
    return [(problem, replace(job, tests=job.tests[:tests])) for problem, job in jobs]


def hostile() -> Iterator[tuple[str, Job]]:
    """Yield the programs of both corpora, each with the name of its group."""
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
    """Counts of one group of programs, and lines that describe single programs."""

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
            score = security(report, findings, task) or 0.0
            line = f"{job.job_id[:110]} ({report.verdict}) {report.tried}"
            (self.punished if score == -1.0 else self.spared).append(line)
            if -1.0 < score < 1.0:
                self.hinted.append(f"{line} {findings.dangers if findings else 'cannot be read'}")

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
        help="tests of each reference; a program's attempts depend on few of them",
    )
    parser.add_argument("--most", type=int, default=10_000, help="programs of each set")
    parser.add_argument("--each", action="store_true")
    parser.add_argument("--only", default="", help="a name of SETS, or `hostile`; default: all")
    arguments = parser.parse_args()
    counts: dict[str, Count] = {}
    print(
        "| programs | judged | punished | hinted | no verdict | attempts not counted |\n"
        "|---|---|---|---|---|---|"
    )
    with Sandbox(SandboxConfig(isolation=arguments.isolation)) as sandbox:
        for name, (source, path) in SETS.items():
            if (DATA / path).exists() and arguments.only in name:
                jobs = references(source, path, arguments.tests)[: arguments.most]
                for at in range(0, len(jobs), BATCH):
                    counts.setdefault(name, Count()).add(sandbox, jobs[at : at + BATCH])
                print(counts[name].row(name), flush=True)
        if HOSTILE.exists() and arguments.only in "hostile":
            for name, job in hostile():  # one at a time, so that they cannot harm each other
                counts.setdefault(name, Count()).add(sandbox, [(None, job)])
    for name, count in counts.items():
        if name not in SETS:
            print(count.row(name))
    for name, count in counts.items() if arguments.each else ():
        honest = name in SETS or "honest" in name
        for line in (*count.punished, *count.hinted) if honest else count.spared:
            print(f"{name}: {line}")


if __name__ == "__main__":
    main()
