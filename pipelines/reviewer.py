"""What `ratchet reviewer` does: make review records, teach a Reviewer from them, train it by what its comments change."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from artifacts.store import Store
from pipelines.data_commands import READS
from problems.rl_parquet import write_verl
from problems.schema import Problem, read_parquet
from resources.home import Home, NotReady
from resources.place import ray_of
from resources.profile import Profile, load_profile
from resources.ray_job import train
from rewards.composite import reward_hash
from sandbox.sandbox import Sandbox
from verl_jobs.agents.executor import Executor
from verl_jobs.agents.records import reviews, write_reviews
from verl_jobs.agents.supervised import Lessons, LessonsFailed, learn
from verl_jobs.job import VALIDATION, TrainingJob, metrics
from verl_jobs.saving import best
from verl_jobs.start import check_start

NONE_SHOWN = "no problem shows a test, so there is nothing to report: add problems with visible tests, or --set family.visible_tests=2"


def records(to: Path, profile: str | None, console: Console) -> int:
    """Of the clean problems of this home. Raises NotReady where there are none with visible tests."""
    loaded = load_profile(profile)
    with Sandbox(loaded.sandbox) as sandbox:
        found = reviews(clean_problems(loaded), Executor(sandbox))
    if not found:
        raise NotReady(NONE_SHOWN)
    write_reviews(found, to)
    console.print(f"{to}: {len(found):,} records of {len({review.problem_id for review in found}):,} problems", highlight=False, soft_wrap=True)
    return 0


def teach(start: Path, records: Path, to: Path, lessons: Lessons, console: Console) -> int:
    """Supervised, by verl's SFT trainer. Raises FileNotFoundError and NotReady."""
    for path in (start / "config.json", records):
        if not path.exists():
            raise FileNotFoundError(f"{path}: no such file: give a Hugging Face folder with --from, and --records of `ratchet reviewer records`")
    try:
        learn(start, records, to, lessons)
    except (LessonsFailed, FileExistsError) as error:
        raise NotReady(str(error)) from error
    console.print(f"{to}: a Reviewer: ratchet solve problem.md --reviewer {to}", highlight=False, soft_wrap=True)
    return 0


def reinforce(start: Path, to: Path, profile: str | None, console: Console) -> int:
    """By what its comments change in the verdict on another Generator's mends (`training.agents.generator`). Raises NotReady and UnfitStart.

    Goes on where it was; the trainer's folder lies beside `to`.
    """
    loaded, home = load_profile(profile), Home.from_environment()
    if loaded.training.agents.trains != "reviewer":
        raise NotReady("say whose programs are reviewed: --generator, a folder or an endpoint")
    if to.exists():
        raise NotReady(f"{to} exists: give another folder")
    check_start(start, tokens=loaded.training.prompt_tokens + loaded.training.answer_tokens)
    folder = to.absolute().with_name(f".{to.name}.training")
    job = reviewer_job(start, folder, clean_problems(loaded), loaded, home)
    train(job, ray_of(home, loaded, job))
    history = metrics(folder)
    step, chosen = best(folder, {record["step"]: record[VALIDATION] for record in history if VALIDATION in record})
    shutil.copytree(chosen, to)
    console.print(f"{to}: the Reviewer of step {step} of {job.training.steps}", highlight=False, soft_wrap=True)
    return 0


def reviewer_job(start: Path, folder: Path, problems: Sequence[Problem], profile: Profile, home: Home) -> TrainingJob:
    folder.mkdir(parents=True, exist_ok=True)
    for split in ("train", "validation"):
        write_verl([problem for problem in problems if problem.split == split and not problem.gated], folder / f"{split}.parquet")
    return TrainingJob(
        folder=str(folder), chain=f"reviewer-{folder.name.strip('.')}", start=str(start.absolute()), train=str(folder / "train.parquet"),
        validation=str(folder / "validation.parquet"), inputs={}, training=profile.training, reward=profile.reward,
        reward_hash=reward_hash(profile.reward), isolation=profile.sandbox.isolation, backend=profile.sandbox.backend, seed=profile.seed,
    )  # fmt: skip


def clean_problems(profile: Profile) -> list[Problem]:
    """Raises NotReady where no problems were read yet, and where none shows a test."""
    home = Home.from_environment()
    store = Store(profile.storage.root, cache=home.path / "cache") if profile.storage.root else Store(home.path)
    clean = store.current("datasets", "clean_problems")
    if clean is None:
        raise NotReady(f"no problems have been read yet: the first run reads them: {READS}")
    problems = read_parquet(clean.path / "problems.parquet")
    if not any(problem.visible_tests for problem in problems):
        raise NotReady(NONE_SHOWN)
    return problems
