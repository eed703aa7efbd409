"""Train the Reviewer, the agent that comments on programs in conversations."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from artifacts.hashing import hash_folder
from cli.data.show import READS
from cli.options import (
    ProfileOption,
    SetOption,
)
from pipelines.launch import prepare_run
from pipelines.run_worker import BUSY
from problems.dataset.rl_parquet import write_verl
from problems.schema import Problem, read_parquet, set_hash
from resources import lease
from resources.config.profile import Profile
from resources.home import NotReady
from resources.ray.job import train
from resources.ray.place import ray_of
from resources.settings import Settings
from rewards.composite import reward_hash
from sandbox.sandbox import Sandbox
from verl_jobs.agents.executor import Executor
from verl_jobs.agents.records import reviews, write_reviews
from verl_jobs.agents.supervised import ReviewerTraining, ReviewerTrainingFailed, learn
from verl_jobs.job import TrainingJob
from verl_jobs.trainer.checkpoints import best

GROUP = "Train"
app = typer.Typer(help=__doc__, no_args_is_help=True, rich_markup_mode=None)


NONE_SHOWN = (
    "no problem shows a test, so there is nothing to report: add problems with visible tests, or "
    "--set family.visible_tests=2"
)


DRAWN = (
    "no curriculum or sampler draws for a Reviewer, for they go by what a Generator is "
    "expected to solve: "
    "--set training.curriculum.schedule=uniform, and no training.plugins.sampler"
)


def records(to: Path, settings: Settings, console: Console) -> int:
    """Write review records from the clean problems of this home. Raises NotReady if none has
    visible tests.
    """
    if to.is_dir():
        raise NotReady(f"--to: {to} is a folder: give a file, such as reviews.parquet")
    loaded = settings.profile
    with Sandbox(loaded.sandbox) as sandbox:
        rows = reviews(clean_problems(settings), Executor(sandbox))
    if not rows:
        raise NotReady(NONE_SHOWN)
    write_reviews(rows, to)
    console.print(
        (
            f"{to}: {len(rows):,} records of {len({review.problem_id for review in rows}):,} "
            "problems"
        ),
        highlight=False,
        soft_wrap=True,
    )
    return 0


def teach(start: Path, records: Path, to: Path, lessons: ReviewerTraining, console: Console) -> int:
    """Supervised, by verl's SFT trainer. Raises FileNotFoundError and NotReady."""
    for path in (start / "config.json", records):
        if not path.exists():
            raise FileNotFoundError(
                f"{path}: no such file: give a Hugging Face folder with --from, and --records "
                "of `ratchet reviewer records`"
            )
    try:
        learn(start, records, to, lessons)
    except (ReviewerTrainingFailed, FileExistsError) as error:
        raise NotReady(str(error)) from error
    console.print(
        f"{to}: a Reviewer: ratchet solve problem.md --reviewer {to}",
        highlight=False,
        soft_wrap=True,
    )
    return 0


def reinforce(start: Path, to: Path, settings: Settings, console: Console) -> int:
    """Train the Reviewer by what its comments change in the verdict on another Generator's fixes
    (`training.agents.generator`).

    It resumes. Exit code: 0 done, 3 another process trains here. Raises what `prepare_run` raises,
    before anything starts.
    """
    training = settings.profile.training
    if training.agents.trains != "reviewer":
        raise NotReady("say whose programs are reviewed: --generator, a folder or an endpoint")
    if training.selects_problems:
        raise NotReady(DRAWN)
    if to.exists():
        raise NotReady(f"{to} exists: give another folder")
    if not start.is_dir():
        raise NotReady(
            f"--from: no folder {start}: give a Reviewer of `ratchet reviewer teach`, or "
            "another Hugging Face folder"
        )
    generator = settings.profile.training.agents.generator
    if (
        not generator.startswith(("http://", "https://"))
        and not Path(generator).expanduser().is_dir()
    ):
        raise NotReady(
            f"--generator: {generator} is no folder, and no address of an endpoint (http://...)"
        )
    home, profile = settings.home, prepare_run(settings, base=start.absolute())
    job = reviewer_job(start, to, clean_problems(settings), profile)
    try:
        lease.take(home.lease, job.chain)
    except lease.LeaseHeld as held:
        console.print(str(held), style="yellow", soft_wrap=True)
        return BUSY
    try:
        train(job, ray_of(home, profile, job))
    finally:
        lease.release(home.lease)
    step, chosen = best(job.path, job.validations())
    shutil.copytree(chosen, to)
    console.print(
        f"{to}: the Reviewer of step {step} of {job.training.steps}",
        highlight=False,
        soft_wrap=True,
    )
    return 0


def reviewer_job(
    start: Path, to: Path, problems: Sequence[Problem], profile: Profile
) -> TrainingJob:
    """Return the Reviewer's training job. Its folder, beside `to`, follows from everything that
    decides the result, so another start never resumes from it.
    """
    problems_by_split = {
        split: [problem for problem in problems if problem.split == split and not problem.gated]
        for split in ("train", "validation")
    }
    generator = Path(profile.training.agents.generator).expanduser()
    inputs = (
        {"start": hash_folder(start)}
        | {split: set_hash(each) for split, each in problems_by_split.items()}
        | profile.training.plugins.hashes()
    )
    inputs |= (
        {"generator": hash_folder(generator)} if generator.is_dir() else {}
    )  # an endpoint is known by its address alone
    job = TrainingJob(
        folder="",
        chain=f"reviewer-{to.name}",
        start=str(start.absolute()),
        train="",
        validation="",
        inputs=inputs,
        training=profile.training,
        reward=profile.reward,
        reward_hash=reward_hash(profile.reward),
        isolation=profile.sandbox.isolation,
        backend=profile.sandbox.backend,
        seed=profile.seed,
    )
    folder = to.absolute().with_name(f".{to.name}.training") / job.key[:12]
    folder.mkdir(parents=True, exist_ok=True)
    for split, each in problems_by_split.items():
        write_verl(each, folder / f"{split}.parquet")
    return job.model_copy(
        update={
            "folder": str(folder),
            **{split: str(folder / f"{split}.parquet") for split in problems_by_split},
        }
    )


def clean_problems(settings: Settings) -> list[Problem]:
    """Raises NotReady where no problems were read yet, and where none shows a test."""
    clean = settings.store.current("datasets", "clean_problems")
    if clean is None:
        raise NotReady(f"no problems have been read yet: the first run reads them: {READS}")
    problems = read_parquet(clean.path / "problems.parquet")
    if not any(problem.visible_tests for problem in problems):
        raise NotReady(NONE_SHOWN)
    return problems


@app.command("records")
def reviewer_records(
    to: Annotated[Path, typer.Option("--to", help="The parquet to write.")],
    profile: ProfileOption = None,
) -> None:
    """Write programs that fail an example, each with its error, as training records."""
    raise typer.Exit(records(to, Settings.read(profile), Console()))


@app.command("teach")
def reviewer_teach(
    start: Annotated[Path, typer.Option("--from", help="A Hugging Face folder.")],
    records: Annotated[Path, typer.Option(help="What `ratchet reviewer records` wrote.")],
    to: Annotated[Path, typer.Option("--to", help="Folder for the Reviewer.")],
    steps: Annotated[int, typer.Option(min=1, help="Optimizer steps.")] = 200,
    learning_rate: Annotated[
        float, typer.Option(min=1e-12, max=1.0, help="At its highest.")
    ] = 1e-3,
    batch: Annotated[int, typer.Option(min=1, help="Records a step.")] = 16,
) -> None:
    """Fine-tune a Reviewer on review records, with verl's SFT trainer."""
    from verl_jobs.agents.supervised import ReviewerTraining

    raise typer.Exit(
        teach(
            start,
            records,
            to,
            ReviewerTraining(steps=steps, learning_rate=learning_rate, batch=batch),
            Console(),
        )
    )


@app.command("reinforce")
def reviewer_reinforce(
    start: Annotated[
        Path, typer.Option("--from", help="The Reviewer to begin with, a Hugging Face folder.")
    ],
    generator: Annotated[
        str,
        typer.Option(
            help="Who writes and fixes programs, and is not trained: a folder or an endpoint."
        ),
    ],
    to: Annotated[Path, typer.Option("--to", help="Folder for the better Reviewer.")],
    profile: ProfileOption = None,
    change: SetOption = None,
) -> None:
    """Train the Reviewer by how its comments change the verdict."""

    where = (
        generator if generator.startswith("http") else str(Path(generator).expanduser().absolute())
    )
    agents = ["training.agents.trains=reviewer", f"training.agents.generator={where}"]
    settings = Settings.read(profile, change or ()).with_changes(agents)
    raise typer.Exit(reinforce(start, to, settings, Console()))
