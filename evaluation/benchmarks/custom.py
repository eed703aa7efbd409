"""A benchmark of the user's own: a YAML file that names its data, how it is asked, and what of an answer is the program.

name: kitchen
data: kitchen.jsonl          # beside the YAML file; columns of the schema, tests included (docs/explanation/sources.md)
prompt: "{statement}\\n\\n{starter_code}"
extraction: fence            # the last fenced block; or `given`: the answer as it is; or `until WORD`
stop: ["\\n```"]
max_new_tokens: 512
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from evaluation.benchmarks.benchmark import Benchmark
from evaluation.generation.decoder import Chat, Sampling
from problems.columns import ProblemError
from problems.schema import Problem
from problems.sources.source import Loaded
from rewards.extraction import extract_code


class Yours(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    name: str
    data: Path
    """Relative to the YAML file."""
    prompt: str = "{statement}"
    """`{statement}` and `{starter_code}` are put in."""
    extraction: str = "fence"
    stop: tuple[str, ...] = ("\n```",)
    max_new_tokens: int = 512

    def extract(self, text: str) -> str:
        if self.extraction == "fence":
            return extract_code(text)
        return (
            text.split(self.extraction.removeprefix("until "), 1)[0]
            if self.extraction.startswith("until ")
            else text
        )


@dataclass(frozen=True)
class YourBenchmark(Benchmark):
    template: str = "{statement}"

    def prompt(self, problem: Problem) -> Chat:
        return [{"role": "user", "content": self.raw_prompt(problem)}]

    def raw_prompt(self, problem: Problem) -> str:
        return self.template.replace("{starter_code}", problem.starter_code).replace(
            "{statement}", problem.statement
        )


def read(file: Path) -> Yours:
    """Raises FileNotFoundError, and ProblemError naming the key."""
    try:
        said: Mapping[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
        found = Yours.model_validate(said)
    except (yaml.YAMLError, ValidationError) as error:
        raise ProblemError(
            " ".join(str(error).split())[:300], "see docs/explanation/benchmarks.md", str(file)
        ) from error
    if found.extraction not in ("fence", "given") and not found.extraction.startswith("until "):
        raise ProblemError(
            f"extraction is {found.extraction!r}", "write fence, given or until WORD", str(file)
        )
    return found.model_copy(update={"data": file.parent / found.data})


def benchmark(yours: Yours, loaded: Loaded) -> Benchmark:
    tasks = tuple(sorted(loaded.problems, key=lambda each: each.problem_id))
    sampling = Sampling(max_new_tokens=yours.max_new_tokens)
    return YourBenchmark(
        yours.name,
        tasks,
        sampling,
        conventions=f"a file of your own, {yours.extraction}",
        stop=yours.stop,
        template=yours.prompt,
    )
