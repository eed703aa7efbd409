"""Does the strength of tests predict that they accept wrong programs?

    python -m measurements.strength HOME [--workers N] [--tasks N]

HumanEval's base tests are measured, and its plus tests decide which programs are wrong. The
programs are CodeT's samples, each distinct program of a task once. Odd samples are judged: a task
is positive if a sample passes the base tests and fails the plus tests. The strength comes from
mutants, and from 20 even samples of the task. Prints the AUC of each strength over the tasks and
over the accepted samples, and the positive tasks. Verdicts are stored in HOME, so that a repeated
command resumes. `RATCHET_DATA` names the folder of the sets.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from measurements.programs import DATA, Program, codet
from problems.schema import Problem
from problems.sources.registry import load
from problems.syntax import normal_form
from problems.verification.strength import Strength
from problems.verification.verification import Verification, verify
from sandbox.protocol import Job, Verdict
from sandbox.sandbox import Sandbox, SandboxConfig

SAMPLES = 20  # of a task, as mutants
RULES = ((4, 0), (16, 0), (16, SAMPLES))  # mutants and samples


def distinct(programs: Iterable[Program]) -> list[Program]:
    """Return one program of each normal form of a task, the first."""
    forms: dict[tuple[str, str], Program] = {}
    for program in programs:
        forms.setdefault((task_of(program), normal_form(program.source)), program)
    return list(forms.values())


def task_of(program: Program) -> str:
    return program.name.partition("#")[0].rpartition("/")[2]


def is_odd(program: Program) -> bool:
    return int(program.name.partition("#")[2]) % 2 == 1


def tasks(name: str) -> dict[str, Problem]:
    """Return the problems of a set by the number of the task."""
    problems = load(name, DATA / name).problems
    return {problem.problem_id.rpartition("/")[2]: problem for problem in problems}


def verdicts(path: Path, jobs: Sequence[Job], sandbox: Sandbox) -> dict[str, str]:
    """Return the verdict of each job, from the file if it is stored there."""
    path.touch()
    stored = {row["id"]: row["verdict"] for row in map(json.loads, path.read_text().splitlines())}
    pending, begun = [job for job in jobs if job.job_id not in stored], time.monotonic()
    with path.open("a", buffering=1) as out:
        for done, report in enumerate(sandbox.run(pending), 1):
            stored[report.job_id] = str(report.verdict)
            out.write(json.dumps({"id": report.job_id, "verdict": report.verdict}) + "\n")
            if done % 500 == 0:
                seconds = time.monotonic() - begun
                print(f"{path.stem}: {done} of {len(pending)}, {seconds:.0f} s", flush=True)
    return stored


def auc(positive: Sequence[float], negative: Sequence[float]) -> float:
    """Return the chance that a positive scores higher than a negative; a tie counts half."""
    pairs = [(high > low) + (high == low) / 2 for high in positive for low in negative]
    return sum(pairs) / len(pairs)


def shares(row: Strength) -> dict[str, float]:
    """Return estimates of the share of broken programs that the tests accept."""
    everything = row.mutants + row.equivalent
    return {
        "all count": 1 - row.killed / everything if everything else 0.5,
        "equivalent left out": 1 - row.killed / row.mutants if row.mutants else 0.5,
        "upper end of the interval": 1 - row.interval[0],
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("home", type=Path, help="folder of the stored verdicts")
    parser.add_argument("--workers", type=int)
    parser.add_argument("--tasks", type=int, default=164, help="only the first")
    arguments = parser.parse_args()
    arguments.home.mkdir(parents=True, exist_ok=True)
    base, plus = tasks("humaneval"), tasks("humanevalplus")
    base = {task: base[task] for task in list(base)[: arguments.tasks]}
    programs = [program for program in distinct(codet()) if task_of(program) in base]
    with Sandbox(SandboxConfig(workers=arguments.workers)) as sandbox:

        def judged(name: str, problems: dict[str, Problem], some: list[Program]) -> dict[str, str]:
            jobs = [problems[task_of(each)].job(each.source, each.name) for each in some]
            return verdicts(arguments.home / f"{name}.jsonl", jobs, sandbox)

        odd = [program for program in programs if is_odd(program)]
        on_base = judged("base", base, odd)
        accepted = [program for program in odd if on_base[program.name] == Verdict.AC]
        on_plus = judged("plus", plus, accepted)
        strengths = {
            (mutants, samples): {
                row.problem_id.rpartition("/")[2]: row
                for row in verify(
                    list(with_samples(base, programs, samples)),
                    sandbox,
                    arguments.home / "journal.jsonl",
                    Verification(mutants=mutants, repeats=1),
                ).strength
            }
            for mutants, samples in RULES
        }
    report(accepted, lambda each: on_plus[each.name] != Verdict.AC, strengths)


def with_samples(
    base: dict[str, Problem], programs: Iterable[Program], most: int
) -> Iterable[Problem]:
    """Yield the problems with at most `most` even samples each."""
    samples: dict[str, list[str]] = defaultdict(list)
    for program in programs:
        if not is_odd(program):
            samples[task_of(program)].append(program.source)
    for task, problem in base.items():
        yield replace(problem, extra=problem.extra | {"samples": samples[task][:most]})


def report(
    accepted: Sequence[Program],
    is_wrong: Callable[[Program], bool],
    strengths: dict[tuple[int, int], dict[str, Strength]],
) -> None:
    """Print the AUC of each strength over the tasks with an accepted sample, and over these."""
    wrong = [program for program in accepted if is_wrong(program)]
    positive = sorted({task_of(program) for program in wrong}, key=int)
    negative = {task_of(program) for program in accepted} - {*positive}
    print(
        f"{len(accepted)} samples pass the base tests, {len(wrong)} of them fail the plus tests: "
        f"{len(positive)} tasks of {len(positive) + len(negative)}; load {os.getloadavg()[0]:.0f}"
    )
    right = [program for program in accepted if not is_wrong(program)]
    print("\n| mutants, samples | share accepted | AUC, tasks | AUC, samples |\n|---|---|---|---|")
    for (mutants, samples), rows in strengths.items():
        for name in shares(next(iter(rows.values()))):
            scores = {task: shares(row)[name] for task, row in rows.items()}
            by_task = auc([scores[task] for task in positive], [scores[task] for task in negative])
            by_sample = auc(
                [scores[task_of(each)] for each in wrong], [scores[task_of(each)] for each in right]
            )
            print(f"| {mutants}, {samples} | {name} | {by_task:.2f} | {by_sample:.2f} |")
    print(f"\nTasks with a wrong sample that passes the base tests: {', '.join(positive)}")


if __name__ == "__main__":
    main()
