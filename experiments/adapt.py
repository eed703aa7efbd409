"""`ratchet adapt`: measure how much a few examples of a new problem family improve a checkpoint.

The examples are given in the prompt, or trained on with gradient steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from rich.console import Console
from rich.table import Table

from artifacts.hashing import hash_text
from evaluation.benchmarks.embedded import SAMPLING
from experiments.adaptation import ALL, AdaptationRow, AdaptationStudy, Family, study_id
from problems.embedded import families as embedded
from problems.embedded.settings import FamilyConfig
from problems.schema import Problem, read_parquet
from resources.home import NotReady
from resources.registry.versions import ALIASES, UnknownVersion, find
from resources.settings import Settings
from sandbox.sandbox import Sandbox
from verl_jobs.gguf.source import names_gguf
from verl_jobs.sft.adaptation import Adaptation, frozen_of
from verl_jobs.sft.start import UnfitStart, check_start


def adapt(
    start: str, problems: Path | None, keep: bool, settings: Settings, console: Console
) -> int:
    """Measure, then print the table and the path of the JSON; a repeated command resumes.

    start: folder, stored name, version, hub id or GGUF file of a checkpoint. problems: a parquet
    file instead of the embedded families. keep: whether adapted checkpoints stay on disk. Raises
    NotReady for an unsuitable start or unsuitable problems.
    """
    home, profile = settings.home, settings.profile
    home.make()
    config = profile.adaptation
    folder = checkpoint_folder(start, settings)
    try:
        check_start(folder, lora=config.lora)
        check_start(folder, frozen=frozen_of(folder, config) if "frozen" in config.ways else ())
    except UnfitStart as error:
        raise NotReady(f"cannot adapt {start!r}: {error}") from None
    try:
        families = (
            (read_family(problems, config),)
            if problems
            else embedded_families(profile.family, config)
        )
    except ValueError as error:
        raise NotReady(str(error)) from None
    sampling = SAMPLING.model_copy(update={"max_new_tokens": profile.training.answer_tokens})
    study = AdaptationStudy(
        folder,
        families,
        config,
        sampling,
        home.path / "adaptations" / study_id(folder, families, config, sampling),
        keep,
    )
    with Sandbox(profile.sandbox) as sandbox, console.status("") as status:
        rows = study.run(
            sandbox, lambda name, done, of: status.update(f"{done + 1} of {of}: {name}")
        )
    console.print(
        f"[bold]{start}[/], greedy decoding, at most {sampling.max_new_tokens} tokens; gain: "
        "points over the start on the same problems; intervals: 95 %"
    )
    console.print(table(rows))
    console.print(
        f"Results and inputs: {study.folder / 'result.json'}",
        style="dim",
        soft_wrap=True,
        highlight=False,
    )
    return 0


def embedded_families(family: FamilyConfig, config: Adaptation) -> tuple[Family, ...]:
    """Return the embedded families of `config`. Raises ValueError if one has too few problems."""
    needed = max(config.shots) * config.seeds
    return tuple(
        Family(
            name,
            tuple(embedded.examples(family, name, needed)),
            tuple(embedded.heldout(family, name, config.problems)),
        )
        for name in config.families
    )


def read_family(path: Path, config: Adaptation) -> Family:
    """Read a family from a parquet file of problems.

    Half of the problems, selected by a hash of their ids, are held out. Of the others, those with a
    solution are examples. Raises ValueError if there are too few.
    """
    problems = sorted(read_parquet(path), key=lambda problem: hash_text(problem.problem_id))
    heldout = [problem for problem in problems if hash_text(problem.problem_id)[0] in "01234567"][
        : config.problems
    ]
    statements = {_normalized_statement(problem) for problem in heldout}
    examples = [
        problem
        for problem in problems
        if problem not in heldout
        and problem.solutions
        and _normalized_statement(problem) not in statements
    ]
    needed = max(config.shots) * config.seeds
    if not heldout or len(examples) < needed:
        raise ValueError(
            f"{path}: {len(heldout)} held-out problems and {len(examples)} examples with a "
            f"solution, of {len(problems)}; {needed} examples are needed: "
            "lower adaptation.shots, or give more problems"
        )
    return Family(path.stem, tuple(examples[:needed]), tuple(heldout))


def table(rows: Sequence[AdaptationRow]) -> Table:
    """Return a table with a row per family, way and k. The mean over all families comes last."""
    table = Table(
        "family",
        "way",
        "k",
        "solved",
        "interval",
        "gain",
        "interval",
        "seconds",
        box=None,
        header_style="dim",
    )
    for row in rows:
        style = "bold" if row.family == ALL else ""
        if row.note:
            table.add_row(row.family, row.way, str(row.k), row.note, style="dim")
            continue
        (low, high), (least, most) = row.interval, row.gain_interval
        gain = (
            (f"{100 * row.gain:+.1f}", f"{100 * least:+.1f} to {100 * most:+.1f}")
            if row.k
            else ("", "")
        )
        table.add_row(
            row.family,
            row.way,
            str(row.k or ""),
            f"{row.share:.1%} of {row.tasks}",
            f"{100 * low:.1f} to {100 * high:.1f}",
            *gain,
            f"{row.seconds:.1f}",
            style=style,
        )
    return table


def checkpoint_folder(start: str, settings: Settings) -> Path:
    """Return the folder of a checkpoint given as folder, stored name, version, hub id or GGUF file,
    which is converted in the home. Raises NotReady.
    """
    if names_gguf(start):
        from verl_jobs.gguf.convert import converted

        try:
            return converted(start, settings.home.path / "models")
        except UnfitStart as error:
            raise NotReady(f"start: {error}") from None
    if Path(start).is_dir():
        return Path(start)
    if artifact := settings.store.current("checkpoints", start):
        return artifact.path
    with suppress(UnknownVersion):
        folder = Path(find(settings.history, start)[-1].path)
        if not folder.is_dir():
            raise NotReady(f"start: the folder of {start}, {folder}, is missing: restore it")
        return folder
    if start in ALIASES:
        raise NotReady(f"start: there is no {start} yet: give a folder or a hub id")
    if start.startswith(("/", ".", "~")):
        raise NotReady(
            f"start: no folder {start!r}: give a checkpoint's name, a folder or a hub id"
        )
    from assets.base_model import snapshot

    return snapshot(start, "start")


def _normalized_statement(problem: Problem) -> str:
    return " ".join(problem.statement.split())
