"""Train the Reviewer, the agent that comments on programs in conversations."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from artifacts.hashing import hash_folder
from cli.app.commands import Command
from cli.app.options import (
    ProfileOption,
    SetOption,
)
from cli.data.show import READS
from cli.display.screen import screen
from pipelines.launch import prepare_run
from pipelines.watch.text import print_text
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
from verl_jobs import samples
from verl_jobs.agents.executor import Executor
from verl_jobs.agents.improvement import improvement
from verl_jobs.agents.records import human_reviews, read_reviews, reviews, write_reviews
from verl_jobs.agents.supervised import ReviewerTraining, ReviewerTrainingFailed, learn
from verl_jobs.job import TrainingJob
from verl_jobs.trainer.checkpoints import best

app = typer.Typer(help=__doc__, no_args_is_help=True, rich_markup_mode=None)
NO_VISIBLE_TESTS = (
    "no problem has visible tests, so there is nothing to review: add problems with visible tests, "
    "or --set family.visible_tests=2"
)
NO_CURRICULUM = (
    "a Reviewer trains without a curriculum or sampler, since these use the Generator's expected "
    "pass rates: --set training.curriculum.schedule=uniform, and remove training.plugins.sampler"
)


def records(to: Path, settings: Settings, console: Console, human: Path | None = None) -> int:
    """Write review records from the clean problems of this home. human: people's reviews instead.

    Raises NotReady if no problem has visible tests, or `to` is a folder; ProblemError.
    """
    if to.is_dir():
        raise NotReady(f"--out: {to} is a folder: give a file, such as reviews.parquet")
    with Sandbox(settings.profile.sandbox) as sandbox:
        problems, executor, left_out = clean_problems(settings), Executor(sandbox), Counter[str]()
        if human:
            rows, left_out = human_reviews(human, problems, executor)
        else:
            rows = reviews(problems, executor)
    for reason, count in left_out.items():
        print_text(console, f"left out: {count:,} of {human}, {reason}")
    if not rows:
        raise NotReady(f"{human}: no review can be used" if human else NO_VISIBLE_TESTS)
    write_reviews(rows, to)
    print_text(
        console,
        f"{to}: {len(rows):,} records of {len({review.problem_id for review in rows}):,} problems",
    )
    return 0


def teach(
    start: Path, records: Path, to: Path, training: ReviewerTraining, console: Console
) -> int:
    """Fine-tune a Reviewer with verl's SFT trainer. Raises FileNotFoundError and NotReady."""
    for path in (start / "config.json", records):
        if not path.exists():
            raise FileNotFoundError(
                f"{path} does not exist: --from takes a Hugging Face folder, --records a file of "
                "`ratchet reviewer records`"
            )
    try:
        read_reviews(records)  # a damaged file is named before the trainer starts
        learn(start, records, to, training)
    except (ReviewerTrainingFailed, FileExistsError, ValueError) as error:
        raise NotReady(str(error)) from error
    print_text(console, f"Reviewer: {to}. Use it: ratchet solve problem.md --reviewer {to}")
    return 0


def reinforce(start: Path, to: Path, settings: Settings, console: Console) -> int:
    """Train the Reviewer with reinforcement learning: its reward is the change in verdict between
    the programs of another Generator (`training.agents.generator`) before and after its comments.

    An interrupted training resumes. Return 0, or 3 if another process trains in this home. Raises
    NotReady, and whatever `prepare_run` raises, before the training starts.
    """
    training = settings.profile.training
    if training.agents.trains != "reviewer":
        raise NotReady("no Generator: give --generator, a folder or an endpoint")
    if training.selects_problems:
        raise NotReady(NO_CURRICULUM)
    if to.exists():
        raise NotReady(f"{to} exists: give another folder")
    if not start.is_dir():
        raise NotReady(
            f"--from: no folder {start}: give a Reviewer from `ratchet reviewer teach`, or another "
            "Hugging Face folder"
        )
    generator = settings.profile.training.agents.generator
    if (
        not generator.startswith(("http://", "https://"))
        and not Path(generator).expanduser().is_dir()
    ):
        raise NotReady(
            f"--generator: {generator} is neither a folder nor the address of an endpoint "
            "(http://...)"
        )
    home, profile = settings.home, prepare_run(settings, base=start.absolute())
    job = reviewer_job(start, to, clean_problems(settings), profile)
    lease.take(home.lease, job.run_id)
    try:
        train(job, ray_of(home, profile, job))
    finally:
        lease.release(home.lease)
    step, chosen = best(job.path, job.validations())
    shutil.copytree(chosen, to)
    print_text(console, f"Reviewer of step {step} of {job.training.steps}: {to}")
    sampled = [each for at in samples.steps(job.path) for each in samples.read(job.path, at)]
    print_text(console, improvement(sampled))
    return 0


def reviewer_job(
    start: Path, to: Path, problems: Sequence[Problem], profile: Profile
) -> TrainingJob:
    """Return the Reviewer's training job. The folder's name, beside `to`, is a hash of all inputs,
    so a training with other inputs never resumes there.
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
    if generator.is_dir():  # an endpoint is only known by its address
        inputs["generator"] = hash_folder(generator)
    job = TrainingJob(
        folder="",
        run_id=f"reviewer-{to.name}",
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
    """Return the clean problems of this home. Raises NotReady if there are none, or none has
    visible tests.
    """
    clean = settings.store.current("datasets", "clean_problems")
    if clean is None:
        raise NotReady(f"no problems have been read yet: {READS} reads them")
    problems = read_parquet(clean.path / "problems.parquet")
    if not any(problem.visible_tests for problem in problems):
        raise NotReady(NO_VISIBLE_TESTS)
    return problems


@app.command("records")
def reviewer_records(
    to: Annotated[Path, typer.Option("--out", help="Parquet file to write.")],
    human: Annotated[
        Path | None,
        typer.Option(
            "--from",
            help="People's reviews instead: JSON lines or parquet (problem_id, program, comment).",
        ),
    ] = None,
    profile: ProfileOption = None,
) -> None:
    """Write training records: programs that fail a visible test, each with its error."""
    raise typer.Exit(records(to, Settings.read(profile), screen(), human))


@app.command("teach")
def reviewer_teach(
    start: Annotated[Path, typer.Option("--from", help="A Hugging Face folder.")],
    records: Annotated[Path, typer.Option(help="Records from `ratchet reviewer records`.")],
    to: Annotated[Path, typer.Option("--out", help="Folder for the Reviewer.")],
    steps: Annotated[int, typer.Option(min=1, help="Optimizer steps.")] = 200,
    learning_rate: Annotated[
        float, typer.Option(min=1e-12, max=1.0, help="Peak learning rate.")
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
            screen(),
        )
    )


@app.command("reinforce")
def reviewer_reinforce(
    start: Annotated[
        Path, typer.Option("--from", help="The Reviewer to start from, a Hugging Face folder.")
    ],
    generator: Annotated[
        str, typer.Option(help="The Generator, which is not trained: a folder or an endpoint.")
    ],
    to: Annotated[Path, typer.Option("--out", help="Folder for the trained Reviewer.")],
    profile: ProfileOption = None,
    change: SetOption = None,
) -> None:
    """Train the Reviewer with reinforcement learning: do its comments improve the verdict?"""

    where = (
        generator if generator.startswith("http") else str(Path(generator).expanduser().absolute())
    )
    agents = ["training.agents.trains=reviewer", f"training.agents.generator={where}"]
    settings = Settings.read(profile, change or ()).with_changes(agents)
    raise typer.Exit(reinforce(start, to, settings, screen()))


COMMAND = Command("Train", app)
