"""Does the strength of tests predict that they accept wrong programs?

    python -m measurements.strength HOME [--workers N] [--tasks N]

HumanEval's base tests are measured, and its plus tests decide which programs are wrong. The
programs are CodeT's samples, each distinct program of a task once. Odd samples are judged: a task
is positive if a sample passes the base tests and fails the plus tests. The strength comes from
mutants, from 20 even samples of the task (others), and from the judged samples that the base tests
accept. Prints the AUC of each strength, and of the number of doubtful samples, over the tasks and
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
from problems.registry import load
from problems.schema import Problem
from problems.syntax import normal_form
from problems.verification.strength import Strength
from problems.verification.verification import Verification, verify
from sandbox.protocol import Job, Verdict
from sandbox.sandbox import Sandbox, SandboxConfig

OTHERS = 20  # even samples of a task, as mutants
RULES = ((4, "none"), (16, "none"), (16, "others"), (16, "judged"))  # mutants and samples


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


def scores(row: Strength) -> dict[str, float]:
    """Return estimates of the share of broken programs that the tests accept, and the number of
    doubtful samples.
    """
    everything = row.mutants + row.equivalent
    return {
        "all count": 1 - row.killed / everything if everything else 0.5,
        "equivalent left out": 1 - row.killed / row.mutants if row.mutants else 0.5,
        "upper end of the interval": 1 - row.interval[0],
        "doubtful samples": len(row.doubtful),
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
        samples = {
            "none": {},
            "others": by_task(programs, False, OTHERS),
            "judged": by_task(accepted),
        }
        strengths = {
            (mutants, rule): {
                row.problem_id.rpartition("/")[2]: row
                for row in verify(
                    list(with_samples(base, samples[rule])),
                    sandbox,
                    arguments.home / "journal.jsonl",
                    Verification(mutants=mutants, repeats=1),
                ).strength
            }
            for mutants, rule in RULES
        }
    report(accepted, lambda each: on_plus[each.name] != Verdict.AC, strengths)


def by_task(
    programs: Iterable[Program], odd: bool = True, most: int | None = None
) -> dict[str, list[str]]:
    """Return the sources of the first odd, or even, programs of each task."""
    sources: dict[str, list[str]] = defaultdict(list)
    for program in programs:
        if is_odd(program) == odd:
            sources[task_of(program)].append(program.source)
    return {task: each[:most] for task, each in sources.items()}


def with_samples(base: dict[str, Problem], samples: dict[str, list[str]]) -> Iterable[Problem]:
    """Yield the problems with the samples of their tasks."""
    for task, problem in base.items():
        yield replace(problem, extra=problem.extra | {"samples": samples.get(task, [])})


def report(
    accepted: Sequence[Program],
    is_wrong: Callable[[Program], bool],
    strengths: dict[tuple[int, str], dict[str, Strength]],
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
    print("\n| mutants, samples | score | AUC, tasks | AUC, samples |\n|---|---|---|---|")
    for (mutants, samples), rows in strengths.items():
        for name in scores(next(iter(rows.values()))):
            score = {task: scores(row)[name] for task, row in rows.items()}
            by_tasks = auc([score[task] for task in positive], [score[task] for task in negative])
            by_sample = auc(
                [score[task_of(each)] for each in wrong], [score[task_of(each)] for each in right]
            )
            print(f"| {mutants}, {samples} | {name} | {by_tasks:.2f} | {by_sample:.2f} |")
    print(f"\nTasks with a wrong sample that passes the base tests: {', '.join(positive)}")


if __name__ == "__main__":
    main()
