"""Judge a right, a wrong and a cheating program, and score a set of programs, in a minute."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import typer
from rich.console import Console

from cli.app.commands import Command
from pipelines.watch.text import print_text

if TYPE_CHECKING:
    from problems.schema import Problem

PROBLEM = "simple/alarm_count"
CHEAT = """class Anything(int):
    def __eq__(self, other):  # claims to be equal to every expected value
        return True


def alarm_count(readings, low, high):
    return Anything(-1)
"""
EASY = ("grade-1", "grade-2", "grade-3")  # the stand-in solves these
NEXT = """Where to go next:
  ratchet demo                                      # a complete training here, in minutes
  ratchet train --base BASE --problems FILE         # your model and your problems
  ratchet evaluate --benchmark B --completions C    # score completions that you have
  ratchet judge --help                              # judge programs of your own
  docs/tutorial.md                                  # step by step"""


def tour(console: Console) -> int:
    """Print the verdicts of three programs, then a score. Return 1 if a verdict is not as expected.

    Nothing is written to a home. Raises IsolationError or SandboxError.
    """
    from problems.sources.simple import generate

    problems = generate()
    problem = next(each for each in problems if each.problem_id == PROBLEM)
    print_text(console, f"[bold]1. Three programs for one problem[/]\n{problem.statement}\n")
    as_expected = _judge_three(problem, console)
    print_text(console, f"[bold]2. The score of {len(problems)} programs[/]")
    print_text(
        console,
        "They stand in for a model: correct for the problems of grades 1 to 3, with a typical "
        "mistake in the harder ones. A model's completions are judged and scored the same way.\n",
    )
    _score(problems, console)
    print_text(
        console,
        "\nThe interval is for other problems of this kind. A model is promoted only if it solves "
        "more held-out problems than the champion and chance does not explain it.\n",
    )
    console.print(NEXT, highlight=False, soft_wrap=True)
    return 0 if as_expected else 1


def _judge_three(problem: Problem, console: Console) -> bool:
    """Print each program with its table. Return whether the right one alone is accepted."""
    from sandbox.explain import table
    from sandbox.protocol import Verdict
    from sandbox.sandbox import Sandbox

    programs = {
        "right": problem.solutions[0], "wrong": str(problem.extra["wrong"]), "cheating": CHEAT,
    }  # fmt: skip
    jobs = [problem.job(source, name) for name, source in programs.items()]
    with Sandbox() as sandbox:
        reports = {report.job_id: report for report in sandbox.run(iter(jobs))}
    for job in jobs:
        console.print(
            job.source.rstrip(), highlight=False, markup=False, soft_wrap=True, style="cyan"
        )
        console.print(
            table(f"the {job.job_id} program", job, reports[job.job_id]),
            highlight=False, markup=False, soft_wrap=True,
        )  # fmt: skip
    accepted = [name for name in programs if reports[name].verdict is Verdict.AC]
    return accepted == ["right"]


def _score(problems: list[Problem], console: Console) -> None:
    from cli.evaluate.progress import judge_all
    from cli.evaluate.score_table import print_scores
    from evaluation.benchmarks.benchmark import from_problems
    from evaluation.completions import Completion
    from evaluation.judging.judge import Verdicts
    from evaluation.judging.scoring import Submission, scorecard
    from evaluation.reports.figures import Figures
    from evaluation.sampling import Sampling
    from evaluation.scorecard import Origin

    solves = {
        each.problem_id: "wrong" not in each.extra or any(tag in EASY for tag in each.tags)
        for each in problems
    }
    completions = [
        Completion(
            each.problem_id,
            sample=0,
            text=each.solutions[0] if solves[each.problem_id] else str(each.extra["wrong"]),
            whole=True,
        )
        for each in problems
    ]
    harness = from_problems("simple", problems, Sampling()).harness
    origin = Origin(benchmark="simple", data="", sanitized=False, completions=__name__)
    submission = Submission(completions, origin, "the stand-in")
    with TemporaryDirectory() as folder:
        verdicts = Verdicts(Path(folder) / "verdicts.jsonl")
        try:
            judged, seconds = judge_all(
                harness, submission, verdicts, Console(stderr=True), Path(folder)
            )
        finally:
            verdicts.close()
    print_scores(Figures.of(scorecard(harness, submission, judged, [], seconds)), console)


def command() -> None:
    """Judge a right, a wrong and a cheating program in the sandbox, and score a set of programs.

    Takes less than a minute, trains nothing and writes nothing.
    """
    raise typer.Exit(tour(Console()))


COMMAND = Command("Run", command)
