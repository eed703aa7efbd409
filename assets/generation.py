"""Completions of checkpoints, generated where the profile trains.

In: requests for completions. Out: the source that `evaluation` reads them from. A profile that
trains on a GPU or on a joined Ray generates there, with the engine of its training, in one Ray job
for all requests; this process then reads the cache. Else transformers runs in this process.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from assets.ray_job import other_job
from evaluation.benchmarks import Benchmark
from evaluation.evaluate import fit
from evaluation.generation.completion_sources import CachedSource, FolderSource, Source, requested
from evaluation.generation.requests import GenerationRequest, Requests, read_identities
from evaluation.judging.reports import NotMeasurable
from resources.config.profile import Profile
from resources.model_version import ModelVersion
from resources.progress import ON_RAY
from resources.run_context import StageContext
from verl_jobs.trainer import progress

ENTRY = "serving.generation"


def on_ray(profile: Profile) -> bool:
    """Return whether a Ray job generates."""
    return profile.training.engine != "hf" or bool(profile.ray.address)


def engine_of(profile: Profile) -> dict[str, str]:
    """Return the part of an artifact's config that says what generated its completions."""
    return {"engine": profile.training.engine} if on_ray(profile) else {}


@dataclass(frozen=True)
class Generation:
    """The completions of some requests. The first source that is taken generates all of them.

    requests: returns the requests; called if a Ray job generates.
    """

    stage: StageContext
    requests: Callable[[], Sequence[GenerationRequest]]

    @property
    def cache(self) -> Path:
        return self.stage.run_context.home.path / "answers"

    def source(self, checkpoint: Path, form: Literal["chat", "base"]) -> Source:
        """Return the source of a checkpoint's completions. Raises TrainingFailed."""
        if not on_ray(self.stage.profile):
            return FolderSource(checkpoint, form=form, engine="hf")
        # without an identity: nothing of it can be measured
        return CachedSource(self._identities.get(str(checkpoint), {}), chats=form == "chat")

    @cached_property
    def _identities(self) -> dict[str, dict[str, Any]]:
        """Run the Ray job to its end. It starts again if a process of it died."""
        from resources.ray.job import train

        stage, profile = self.stage, self.stage.profile
        if not (listed := tuple(self.requests())):
            return {}
        requests = Requests(
            engine=profile.training.engine,
            gpus=profile.training.scale.tensor_parallel,
            cache=self.cache,
            requests=listed,
        )
        job = other_job(
            stage,
            "generation",
            requests.model_dump(mode="json"),
            str(listed[0].checkpoint),
            profile.seed,
        )
        job.path.mkdir(parents=True, exist_ok=True)
        requests.write(job.path)

        def on_poll() -> None:
            done, _, total = progress.phase(job.path).partition(" of ")
            if total:
                stage.report.progress.at(int(done), int(total.split()[0]), ON_RAY)
            else:
                stage.report.progress.at(0, 1, "waiting for Ray")

        ray = stage.run_context.ray.of(job, stage.run_context.home, profile)
        train(job, ray, on_poll=on_poll, entry=ENTRY)
        identities = read_identities(job.path)
        shutil.rmtree(job.path, ignore_errors=True)  # the cache has all; another job finds it there
        return identities


def of_benchmarks(
    stage: StageContext, contestants: Sequence[ModelVersion], benchmarks: Sequence[Benchmark]
) -> Generation:
    """Return the completions of all contestants on all benchmarks."""

    def requests() -> list[GenerationRequest]:
        measured = []
        with stage.run_context.new_sandbox() as sandbox:
            for benchmark in benchmarks:
                try:
                    measured.append(fit(benchmark, sandbox, references_of(stage), _at(stage))[0])
                except NotMeasurable:  # without completions; the stage notes the reason
                    continue
        return [
            _request(Path(contestant.path), benchmark)
            for contestant in contestants
            for benchmark in measured
        ]

    return Generation(stage, requests)


def references_of(stage: StageContext) -> Path:
    """Return the folder that keeps which tasks of a benchmark cannot be measured."""
    return stage.run_context.home.path / "benchmarks"


def _at(stage: StageContext) -> Callable[[str, int, int], None]:
    return lambda step, done, total: stage.report.progress.at(done, total, step)


def _request(checkpoint: Path, benchmark: Benchmark) -> GenerationRequest:
    prompts, sampling = requested(benchmark, benchmark.sampling, chats=benchmark.form == "chat")
    return GenerationRequest(
        checkpoint=checkpoint, form=benchmark.form, prompts=tuple(prompts), sampling=sampling
    )
