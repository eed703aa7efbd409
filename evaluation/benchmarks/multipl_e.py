"""MultiPL-E: HumanEval and MBPP translated to JavaScript and C++ (Cassano et al. 2023,
arXiv:2208.08227). Gated.

A base model continues upstream's prompt up to upstream's stop words. A chat replies with the whole
function: it gets the prompt's includes and unions, and a `main` of its own is renamed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from evaluation.benchmarks.benchmark import Benchmark, from_problems
from evaluation.benchmarks.published import Opened, Published
from evaluation.completions import Completion
from evaluation.judging.by_problem import ProblemHarness, ProblemTask, tasks_of
from evaluation.sampling import Sampling
from problems.sources.registry import SOURCES
from rewards.extraction import extract_code

CONVENTIONS = (
    "greedy; a chat completes a function, a base model upstream's prompt; upstream's tests in the "
    "program's process, trust shared: a program that exits with 0 passes, as upstream; "
    "15 s of CPU; C++ as gnu++20 -O2, upstream c++17"
)
END = {"cpp": "\n}"}  # upstream's stop word, with which its tests begin again
OWN_MAIN = "#define main ratchet_main\n{}\n#undef main\n"
_HEAD = re.compile(r"(?:#include.*\n)*")


@dataclass(frozen=True)
class TranslatedHarness(ProblemHarness):
    """Judges a prompt and what continues it, or a whole C++ or JavaScript function."""

    def extracted(self, task: ProblemTask, completion: Completion) -> Completion:
        """Return the function in a model's reply, after what the prompt has ahead of it."""
        if not completion.whole:
            return completion
        text = extract_code(completion.text, task.entry_point, task.problem.language)
        if task.problem.language == "cpp" and text:
            ahead = task.starter_code.partition("//")[0]
            if "union " in text:
                ahead = _HEAD.match(ahead)[0]  # type: ignore[index]  # matches any text
            text = ahead + OWN_MAIN.format(text)
        return replace(completion, text=text)

    def program(self, task: ProblemTask, completion: Completion, sanitized: bool) -> str:
        """Return the program; `sanitized` is for Python."""
        text = super().program(task, completion, False)
        return text if completion.whole else text + END.get(task.problem.language, "")


def translated(at: Opened) -> Benchmark:
    tasks = tasks_of(
        at.problems,
        lambda each: each.problem_id.partition("/")[2],
        lambda each: each.starter_code,
    )
    return from_problems(
        at.name,
        at.problems,
        Sampling(max_new_tokens=1024),  # as upstream
        completes=True,
        conventions=CONVENTIONS,
        stop=next(iter(at.problems)).extra["stop_tokens"],
        harness=TranslatedHarness(
            at.name, "1", "MultiPL-E", tasks, at.digest, at.source.name, prefer="completion"
        ),
    )


HUMANEVAL_JS = Published("humaneval-js", SOURCES["humaneval-js"], translated)
HUMANEVAL_CPP = Published("humaneval-cpp", SOURCES["humaneval-cpp"], translated)
MBPP_JS = Published("mbpp-js", SOURCES["mbpp-js"], translated)
MBPP_CPP = Published("mbpp-cpp", SOURCES["mbpp-cpp"], translated)
