"""`ratchet evaluate --benchmark NAME` with --completions, --model or --endpoint: judge each
completion, write verdicts and scorecard, and print the scores.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, cast

from rich.console import Console

from artifacts.atomic import write_atomic
from cli.evaluate.progress import judge_all, progress_bar
from cli.evaluate.score_table import print_scores
from evaluation.benchmarks.benchmark import Benchmark
from evaluation.benchmarks.published import Opened
from evaluation.benchmarks.registry import opened
from evaluation.completions import read
from evaluation.generation.completion_sources import (
    Form,
    GenerationReport,
    Source,
    folder_of,
    generate_completions,
)
from evaluation.generation.openai_client import EndpointSource
from evaluation.judging.harness import Harness
from evaluation.judging.judge import Verdicts, check
from evaluation.judging.scoring import Submission, scorecard
from evaluation.reports.cost import Price
from evaluation.reports.figures import Figures, Suspects
from evaluation.sampling import Sampling
from evaluation.scorecard import Origin
from pipelines.watch.text import print_text
from verl_jobs.gguf.source import names_gguf


@dataclass(frozen=True)
class EvaluationOptions:
    """The options of the command line that every source of completions shares."""

    benchmark: str
    data: Path | None = None
    out: Path | None = None
    sanitized: bool = False
    partial: bool = False
    ks: tuple[int, ...] = ()
    price: Price = field(default_factory=Price)
    suspects: Suspects = field(default_factory=dict)

    def origin(self, at: Opened, **source: str) -> Origin:
        """Return the scorecard's origin. source: the file of completions, or the model."""
        name = str(Path(self.benchmark).absolute()) if at.published.custom else self.benchmark
        data = str(at.place.path.absolute()) if at.place.path else ""
        return Origin(benchmark=name, data=data, sanitized=self.sanitized, **source)


@dataclass(frozen=True)
class ModelOptions:
    """The model and its generation settings. With an endpoint, `model` is its name there."""

    model: str | None
    endpoint: str | None
    n: int = 1
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0
    form: Literal["auto", "chat", "base"] = "auto"


def evaluate_completions(
    path: Path, options: EvaluationOptions, home: Path, console: Console, errors: Console
) -> int:
    """Judge the completions of a file. Return 0 with a score, 1 if no task could be measured.

    Raises ProblemError, FileNotFoundError, NotJudged.
    """
    at = opened(options.benchmark, options.data, home)
    harness = at.benchmark().harness
    bad_lines: list[str] | None = [] if options.partial else None
    completions = [harness.named(each) for each in read(path, harness.prefer, bad_lines)]
    for line in bad_lines or ():
        print_text(errors, f"skipped: {line}", style="yellow")
    name = path.name.removesuffix(".gz").removesuffix(".jsonl").removesuffix(".json")
    submission = Submission(completions, options.origin(at, completions=str(path.absolute())), name)
    return score(harness, submission, options, console, errors, home)


def evaluate_model(
    model_options: ModelOptions,
    options: EvaluationOptions,
    home: Path,
    console: Console,
    errors: Console,
) -> int:
    """Generate completions, cached in the home, and judge them as `evaluate_completions` does.

    Also raises MissingCompletions and EndpointDown.
    """
    at = opened(options.benchmark, options.data, home)
    benchmark = at.benchmark()
    sampling = benchmark.sampling.model_copy(
        update={
            "n": model_options.n,
            "temperature": model_options.temperature,
            "top_p": model_options.top_p,
            "seed": model_options.seed,
        }
    )
    model, folder = model_options.model or "", Path(model_options.model or "").expanduser()
    if model and folder.is_dir() and not model_options.endpoint:
        model = str(folder.absolute())
    origin = options.origin(
        at, model=model, endpoint=model_options.endpoint or "", form=model_options.form
    )
    submission, report = generate_submission(origin, benchmark, sampling, home, errors)
    if len(report.models) > 1:
        counts = ", ".join(f"{name} ({count})" for name, count in report.models.items())
        errors.print(f"several models answered: {counts}", style="yellow", highlight=False)
    return score(benchmark.harness, submission, options, console, errors, home)


def generate_submission(
    origin: Origin, benchmark: Benchmark, sampling: Sampling, home: Path, errors: Console
) -> tuple[Submission, GenerationReport]:
    """Return completions of the origin's model or endpoint; cached ones are not generated again."""
    source, report = source_of(origin.model, origin.endpoint, origin.form, home), GenerationReport()
    with progress_bar(errors) as progress:
        title = f"completions of {origin.model} {origin.endpoint}".strip()
        bar = progress.add_task(title, total=None, so_far="")
        generated = generate_completions(
            benchmark,
            source,
            sampling,
            home / "answers",
            lambda done, of: progress.update(bar, completed=done, total=of),
            report,
        )
    completions, chats = [benchmark.harness.named(each) for each in generated], source.chats
    texts = [
        benchmark.prompt(each)[-1]["content"] if chats else benchmark.raw_prompt(each)
        for each in benchmark.problems
    ]
    prompts = {
        each.task_id: text for each, text in zip(completions[:: sampling.n], texts, strict=True)
    }
    name = Path(origin.model).name if Path(origin.model).is_absolute() else origin.model
    weights_hash = str(report.identity.get("folder", ""))
    submission = Submission(
        completions,
        origin,
        name or "champion",
        content_hash=weights_hash,
        sampling=sampling.model_dump(mode="json"),
        prompts=prompts,
        weights=str(report.identity.get("weights", "")),
    )
    return submission, report


def source_of(model: str, endpoint: str, form: str, home: Path) -> Source:
    """Return the source that generates completions: a folder, a hub id, a GGUF file, which is
    converted in the home, or an endpoint.

    Raises FileNotFoundError, and UnfitStart for a GGUF file that cannot be converted.
    """
    if endpoint:
        return EndpointSource(endpoint, model or "champion", "base" if form == "base" else "chat")
    if names_gguf(model):
        from verl_jobs.gguf.convert import converted

        model = str(converted(model, home / "models"))
    return replace(folder_of(model), form=cast(Form, form))


def score(
    harness: Harness,
    submission: Submission,
    options: EvaluationOptions,
    console: Console,
    errors: Console,
    home: Path,
) -> int:
    """Judge, write verdicts and scorecard if `--out` is given, and print the scores."""
    missing = check(harness, submission.completions, options.partial)
    verdict_cache = Verdicts(home / "benchmarks" / f"{harness.name}.verdicts.jsonl")
    try:
        judged, seconds = judge_all(harness, submission, verdict_cache, errors, home)
    finally:
        verdict_cache.close()
    if options.out:
        write_atomic(options.out, "".join(json.dumps(each.row()) + "\n" for each in judged))
    if not any(each.measured for each in judged):
        errors.print(
            f"error: no task of {harness.name} can be measured on this machine: {judged[0].detail}",
            soft_wrap=True,
            markup=False,
        )
        return 1
    card = scorecard(harness, submission, judged, missing, seconds)
    figures = Figures.of(card, options.ks, options.suspects, options.price)
    if options.out:
        card_file = options.out.with_name(f"{options.out.name.split('.')[0]}.scorecard.json")
        card.write(card_file, figures.as_json())
    print_scores(figures, console)
    return 0
