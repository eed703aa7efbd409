"""A benchmark's completions from a checkpoint folder (transformers, vLLM or a server with it), an
OpenAI-compatible endpoint, or the cache that another process filled.

In: a benchmark, a source, generation settings, a folder for the cache. Out: one `Completion` for
each task and draw, in the order of the tasks. Each is cached by source, prompt, settings, seed and
number: a killed run resumes, and a repeated one makes no request.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from evaluation.benchmarks.benchmark import Benchmark
from evaluation.completions import Completion
from evaluation.generation.completion_cache import CompletionCache, keys
from evaluation.generation.openai_client import (
    EndpointSource,
    MissingCompletions,
    request_all,
)
from evaluation.sampling import CompletionOutput, Progress, Prompt, Sampling

Form = Literal["auto", "chat", "base"]


@dataclass(frozen=True)
class FolderSource:
    """A Hugging Face checkpoint. `form` auto: chat if its tokenizer has a chat template; `engine`
    auto: vLLM if it and a GPU are available. serve: returns a server with these weights, of the
    engine; without it they are loaded into this process.

    Raises FileNotFoundError if there is no such folder.
    """

    path: Path
    form: Form = "auto"
    engine: Literal["auto", "hf", "vllm", "sglang"] = "auto"
    serve: Callable[[Path], EndpointSource] | None = None

    def __post_init__(self) -> None:
        if not (self.path / "config.json").exists():
            raise FileNotFoundError(
                f"{self.path}: no config.json there: a checkpoint is a Hugging Face folder "
                "with config, weights and tokenizer"
            )

    @cached_property
    def identity(self) -> dict[str, Any]:
        """Return what its completions depend on besides prompt and settings: every file of the
        folder, and the engine.
        """
        from artifacts.hashing import hash_folder
        from artifacts.tensors import weights_hash

        return {
            "folder": hash_folder(self.path),
            "weights": weights_hash(self.path),
            "engine": self.engine if self.serve else self._engine_here,
        }

    @cached_property
    def chats(self) -> bool:
        if self.form != "auto":
            return self.form == "chat"
        from transformers import AutoTokenizer

        return bool(
            AutoTokenizer.from_pretrained(
                self.path, trust_remote_code=False, local_files_only=True
            ).chat_template
        )

    @property
    def _engine_here(self) -> str:
        return "vllm" if self.by_vllm else f"transformers, {_device()}"

    @cached_property
    def by_vllm(self) -> bool:
        from importlib.util import find_spec

        return self.engine == "vllm" or (
            self.engine == "auto" and find_spec("vllm") is not None and _device() == "cuda"
        )


@dataclass(frozen=True)
class CachedSource:
    """Completions that another process generated into the cache. identity: as it had them."""

    identity: dict[str, Any]
    chats: bool


Source = FolderSource | EndpointSource | CachedSource


@dataclass
class GenerationReport:
    """Figures of one pass. `models`: names that an endpoint reported, with counts; more than one
    needs attention.
    """

    requested: int = 0
    cached: int = 0
    cached_s: float = 0.0  # generation time of the cached completions, in seconds
    identity: dict[str, Any] = field(default_factory=dict)
    models: dict[str, int] = field(default_factory=dict)
    journal: Path = Path()


def generate_completions(
    benchmark: Benchmark,
    source: Source,
    sampling: Sampling,
    cache: Path | None,
    on_progress: Progress | None = None,
    report: GenerationReport | None = None,
) -> list[Completion]:
    """Return `sampling.n` completions for each task. A chat's is the model's message (`whole`); a
    base model's continues the benchmark's raw prompt. cache: None generates all of them now.

    Raises EndpointDown for an endpoint that cannot be used, MissingCompletions if it left
    requests without a reply. The completions that arrived are cached, and the same call resumes.
    """
    prompts, sampling = requested(benchmark, sampling, chats=source.chats)
    if cache is None:
        with TemporaryDirectory() as folder:
            outputs = complete(prompts, source, sampling, Path(folder), on_progress, report)
    else:
        outputs = complete(prompts, source, sampling, cache, on_progress, report)
    return task_completions(benchmark, outputs, sampling.n, whole=source.chats)


def requested(
    benchmark: Benchmark, sampling: Sampling, *, chats: bool
) -> tuple[list[Prompt], Sampling]:
    """Return the prompts of a benchmark's tasks, and the settings with the stop words of a base
    model's raw prompts.
    """
    if chats:
        return [benchmark.prompt(problem) for problem in benchmark.problems], sampling
    stop = tuple(dict.fromkeys((*sampling.stop, *benchmark.stop)))
    prompts: list[Prompt] = [benchmark.raw_prompt(problem) for problem in benchmark.problems]
    return prompts, sampling.model_copy(update={"stop": stop})


def task_completions(
    benchmark: Benchmark, outputs: Sequence[CompletionOutput], n: int, *, whole: bool = True
) -> list[Completion]:
    """Return the completions of a benchmark's tasks; outputs: `n` in a row for each task."""
    return [
        Completion(
            task_id=benchmark.task_id(problem),
            sample=k,
            text=output.text,
            whole=whole,
            tokens=output.tokens,
            cut=output.cut,
            seconds=output.seconds,
        )
        for i, problem in enumerate(benchmark.problems)
        for k, output in enumerate(outputs[i * n : i * n + n])
    ]


def complete(
    prompts: Sequence[Prompt],
    source: Source,
    sampling: Sampling,
    cache: Path,
    on_progress: Progress | None = None,
    report: GenerationReport | None = None,
) -> list[CompletionOutput]:
    """Return completions in the order of the prompts, `sampling.n` in a row for each; cached ones
    are not requested.
    """
    rows = keys(prompts, sampling)
    with CompletionCache(cache, source.identity, sampling) as completion_cache:
        completions = completion_cache.completions
        cached_keys = set(rows) & completions.keys()
        cached, cached_s = len(cached_keys), sum(completions[key].seconds for key in cached_keys)
        if on_progress:
            on_progress(sum(key in completions for key in rows), len(rows))
        if cached < len(set(rows)):
            if isinstance(source, CachedSource):
                raise MissingCompletions(
                    f"{completion_cache.path} has {cached} of {len(set(rows))} completions: it was "
                    "changed after they were generated; run this again"
                )
            if isinstance(source, EndpointSource):
                request_all(source, prompts, rows, sampling, completion_cache, on_progress)
            elif source.serve:
                server = source.serve(source.path)
                request_all(server, prompts, rows, sampling, completion_cache, on_progress)
            else:
                _generate(source, prompts, sampling, completion_cache, on_progress)
        if report:
            report.requested = len(set(rows)) - cached
            report.cached, report.cached_s = cached, cached_s
            report.identity, report.models = dict(source.identity), dict(completion_cache.models)
            report.journal = completion_cache.path
        return [completions[key] for key in rows]


def _generate(
    source: FolderSource,
    prompts: Sequence[Prompt],
    sampling: Sampling,
    completion_cache: CompletionCache,
    on_progress: Progress | None,
) -> None:
    """Generate and cache. All greedy draws of a prompt are equal, so only one is generated."""
    if source.by_vllm:
        from evaluation.generation.vllm_engine import generate
    else:
        from evaluation.generation.decoder import generate
    once = sampling if sampling.temperature > 0 else sampling.model_copy(update={"n": 1})
    rows = keys(prompts, once)
    known = {
        at: completion_cache.completions[key]
        for at, key in enumerate(rows)
        if key in completion_cache.completions
    }
    outputs = generate(
        source.path,
        prompts,
        once,
        on_progress,
        known=known,
        on_completions=lambda batch: completion_cache.add((rows[at], one) for at, one in batch),
    )
    # Also prompts that are too long, which no batch holds.
    completion_cache.add(zip(rows, outputs, strict=True))


def folder_of(model: str) -> FolderSource:
    """Return a folder, or a hub id's folder, downloading files that are not in the hub's cache.
    Raises FileNotFoundError with what was tried.
    """
    path = Path(model).expanduser()
    if path.is_dir():
        return FolderSource(path)
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        # Without code, and without a second copy of the weights.
        patterns = ["*.json", "*.safetensors", "*.txt", "*.model", "*.jinja"]
        return FolderSource(Path(snapshot_download(model, allow_patterns=patterns)))
    except (HFValidationError, HfHubHTTPError, LocalEntryNotFoundError) as error:
        reason = " ".join(str(error).split())[:200]
        raise FileNotFoundError(
            f"no model {model!r}: there is no such folder, nor on the hub ({reason}): "
            "give a folder or a hub id"
        ) from error


def _device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"
