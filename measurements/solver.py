"""How often is a problem that a solver verified solved by right programs?

    python -m measurements.solver HOME [--samples N] [--workers N]

HumanEval's base tests without their references are verified by CodeT's samples, the first N of each
task. HumanEval's plus tests, which have references, decide whether the samples that serve as
references are right. Prints, for several least numbers of agreeing samples, the problems that are
kept and those whose references all pass the plus tests; then the same by the share of samples that
agree. Verdicts are stored in HOME, so that a repeated command resumes. `RATCHET_DATA` names the
folder of the sets.
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from measurements.programs import codet
from measurements.strength import task_of, tasks, verdicts
from problems.schema import Problem
from problems.verification.verification import Verification, Verified, verify
from sandbox.protocol import Verdict
from sandbox.sandbox import Sandbox, SandboxConfig

MIN_AGREEING = (1, 2, 3)  # samples that must agree
SHARES = (0.0, 0.1, 0.25, 0.5)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("home", type=Path, help="folder of the stored verdicts")
    parser.add_argument("--samples", type=int, default=20)
    parser.add_argument("--workers", type=int)
    arguments = parser.parse_args()
    arguments.home.mkdir(parents=True, exist_ok=True)
    problems, plus = list(unsolved(arguments.samples)), tasks("humanevalplus")
    print("| agreeing samples | kept | all references right |\n|---|---|---|")
    with Sandbox(SandboxConfig(workers=arguments.workers)) as sandbox:
        for least in MIN_AGREEING:
            config = Verification(agreement=least, repeats=1)
            verified = verify(problems, sandbox, arguments.home / "journal.jsonl", config)
            right = solved(verified, plus, sandbox, arguments.home / "plus.jsonl")
            print(f"| {least} | {len(verified.problems)} | {len(right)} |", flush=True)
            if least == Verification().agreement:
                kept, sound = verified, right
    print("\n| share of the samples | kept | all references right |\n|---|---|---|")
    for low, high in zip(SHARES, (*SHARES[1:], 1.01), strict=True):
        within = [each for each in kept.problems if low <= (each.agreement or 0) < high]
        count = sum(each.problem_id in sound for each in within)
        print(f"| {low:g} to {min(high, 1):g} | {len(within)} | {count} |")
    print("\nremoved:", dict(Counter(row.reason for row in kept.removed)))


def unsolved(samples: int) -> Iterable[Problem]:
    """Yield HumanEval's tasks as problems for training, with samples in place of a reference."""
    programs = defaultdict[str, list[str]](list)
    for program in codet():
        programs[task_of(program)].append(program.source)
    for task, problem in tasks("humaneval").items():
        extra = problem.extra | {"samples": programs[task][:samples]}
        yield replace(problem, solutions=(), gated=False, split="train", extra=extra)


def solved(verified: Verified, plus: dict[str, Problem], sandbox: Sandbox, file: Path) -> set[str]:
    """Return the ids of the problems whose references all pass the plus tests."""
    jobs = {
        f"{problem.problem_id}#{problem.samples.index(source)}": (problem, source)
        for problem in verified.problems
        for source in problem.solutions
    }
    tested = [
        plus[problem.problem_id.rpartition("/")[2]].job(source, key)
        for key, (problem, source) in jobs.items()
    ]
    judged = verdicts(file, tested, sandbox)
    wrong = {key.partition("#")[0] for key in jobs if judged[key] != Verdict.AC}
    return {problem.problem_id for problem in verified.problems} - wrong


if __name__ == "__main__":
    main()
