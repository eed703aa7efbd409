"""A benchmark of the user's own: a YAML file with its data, its prompt, and how the program is
extracted from a completion.

name: kitchen
data: kitchen.jsonl   # beside the YAML file; columns of the schema (docs/explanation/sources.md)
prompt: "{statement}\\n\\n{starter_code}"
extraction: fence     # the block of the program; `given`: the whole text; or `until WORD`
stop: ["\\n```"]
max_new_tokens: 512
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from artifacts.section import Section
from evaluation.benchmarks.benchmark import Benchmark
from evaluation.benchmarks.published import Opened, Published
from evaluation.judging.by_problem import ProblemHarness, tasks_of
from evaluation.sampling import Chat, Sampling
from problems.columns import ProblemError
from problems.reading.own import own
from problems.schema import Problem
from rewards.extraction import extract_code


class CustomSettings(Section):
    name: str
    data: Path
    """Path of the data, relative to the YAML file."""
    prompt: str = "{statement}"
    """Prompt template with the placeholders `{statement}` and `{starter_code}`."""
    extraction: str = "fence"
    stop: tuple[str, ...] = ("\n```",)
    max_new_tokens: int = 512

    def extract(self, text: str, entry_point: str, language: str) -> str:
        if self.extraction == "fence":
            return extract_code(text, entry_point, language)
        return (
            text.split(self.extraction.removeprefix("until "), 1)[0]
            if self.extraction.startswith("until ")
            else text
        )


@dataclass(frozen=True)
class CustomBenchmark(Benchmark):
    template: str = "{statement}"

    def prompt(self, problem: Problem) -> Chat:
        return [{"role": "user", "content": self.raw_prompt(problem)}]

    def raw_prompt(self, problem: Problem) -> str:
        return self.template.replace("{starter_code}", problem.starter_code).replace(
            "{statement}", problem.statement
        )


def read(file: Path) -> CustomSettings:
    """Read the YAML file. Raises FileNotFoundError, and ProblemError naming the invalid key."""
    try:
        data: Mapping[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
        settings = CustomSettings.model_validate(data)
    except (yaml.YAMLError, ValidationError) as error:
        raise ProblemError(
            " ".join(str(error).split())[:300], "see docs/explanation/benchmarks.md", str(file)
        ) from error
    if settings.extraction not in ("fence", "given") and not settings.extraction.startswith(
        "until "
    ):
        raise ProblemError(
            f"extraction is {settings.extraction!r}", "write fence, given or until WORD", str(file)
        )
    return settings.model_copy(update={"data": file.parent / settings.data})


def benchmark(settings: CustomSettings, at: Opened) -> Benchmark:
    tasks = tasks_of(
        at.problems,
        lambda each: each.problem_id.partition("/")[2],
        lambda each: each.starter_code,
    )
    return CustomBenchmark(
        settings.name,
        tuple(at.problems),
        Sampling(max_new_tokens=settings.max_new_tokens),
        conventions=f"a file of your own, {settings.extraction}",
        stop=settings.stop,
        template=settings.prompt,
        published_harness=ProblemHarness(
            at.name,
            "1" if settings.extraction == "fence" else f"1, {settings.extraction}",
            "its own tests",
            tasks,
            at.digest,
            at.source.name,
            packages=("numpy", "sortedcontainers"),
            extract=settings.extract,
        ),
    )


def published(settings: CustomSettings) -> Published:
    """Return the benchmark of a YAML file in the shape of the published ones."""
    return Published(
        settings.name, own(settings.name), lambda at: benchmark(settings, at), custom=True
    )
