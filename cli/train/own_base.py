"""`ratchet train --base`: choose the settings for a base and problems, and show them as a plan.

In: the base, files of problems, and settings that the user gave. Out: the complete settings, and
the plan as rows. Nothing is written before the user agrees.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import sqrt
from pathlib import Path

import typer
from rich.console import Console

from cli.app.confirm import confirmed
from cli.data.sources import read
from cli.display.lengths import limits_to_train
from evaluation.promotion.required_sample_size import wins_needed
from evaluation.statistics.alpha_spending import next_level
from pipelines.watch.text import print_text
from problems.catalogue import add_source, read_sources, validated
from problems.dataset.splits import HELDOUT, VALIDATION, with_parts
from problems.reading.place import Place
from problems.schema import Problem
from problems.sources.registry import SOURCES, load, source_name
from problems.synthesis.settings import SOURCE as SYNTHETIC
from resources.capacity import gpus_here, memory_gib, not_checked, shape_of_start
from resources.config.profile import HELDOUT as GATE
from resources.config.profile import Profile
from resources.home import NotReady, available_memory_gib
from resources.preflight import check_base, check_parts
from resources.registry.ledger import champion_of
from resources.settings import Settings
from verl_jobs.frozen import lower_half
from verl_jobs.gguf.source import FILE, names_gguf
from verl_jobs.planner.planner import plan
from verl_jobs.planner.shapes import DoesNotFit

SHARE = 0.99  # of prompts and reference solutions within the token limits


def settings_for(
    base: str, files: Sequence[Path], given: Settings, console: Console, *, yes: bool
) -> Settings:
    """Print the plan of a training from `base`, ask, and add the files as sources of the home.

    yes: do not ask. Raises NotReady, ProblemError, UnfitStart, and typer.Exit if the user declines.
    """
    base = _absolute(base)
    _check_champion(base, given)
    names = {source_name(file): file for file in files}
    new = {name: validated(name, Place(file)) for name, file in names.items()}
    problems, elsewhere = _problems(new, given, console)
    settings = _with_profile(base, given)
    check_base(given.home, settings.profile)
    check_parts(settings.profile, problems, "--problems")
    if not elsewhere:
        settings.profile.reward.check_tags(problems, later=[SYNTHETIC])
    lengths: list[str] = []
    if any(each.solutions for each in _train(problems)):
        lengths = limits_to_train(_train(problems), SHARE, settings, console)
    settings = replace(settings, changes=(*lengths, *settings.changes))
    settings = _fitted(settings, _train(problems), given.changes)
    rows = _plan(settings, problems, elsewhere, bool(lengths))
    for name, text in rows.items():
        print_text(console, f"{name:<10} {text}")
    if not confirmed("Start this training?", yes):
        raise typer.Exit(0)
    given.home.make()
    for name, place in new.items():
        add_source(given.home.path, name, place)
    return settings


def _absolute(base: str) -> str:
    """Return the base with an absolute path, so that the run finds it from any folder."""
    prefix = FILE if base.startswith(FILE) else ""
    path = Path(base.removeprefix(prefix)).expanduser()
    is_path = bool(prefix) or (not names_gguf(base) and path.exists())
    return f"{prefix}{path.absolute()}" if is_path else base


def _check_champion(base: str, given: Settings) -> None:
    """Raise NotReady if the home's champion was trained from another base: training would continue
    from it.
    """
    if (champion := champion_of(given.history)) is None:
        return
    stored = given.store.current("checkpoints", "base_model")
    if stored is None or stored.manifest.config.get("base") != base:
        fresh = f"{given.home.path}-{Path(base).name.partition(':')[2] or Path(base).name}"
        raise NotReady(
            f"the champion of {given.home.path}, {champion.checkpoint}, was not trained from "
            f"{base}, and a training continues from the champion: use another home, for example "
            f"`export RATCHET_HOME={shlex.quote(fresh)}`, and repeat the command"
        )


def _problems(
    new: Mapping[str, Place], given: Settings, console: Console
) -> tuple[list[Problem], list[str]]:
    """Return the problems of all sources, with the parts that a run gives them, and the names of
    those sources that are read from the hub only when the run begins.
    """
    places = {**read_sources(given.home.path), **new}
    local = {
        name: place
        for name, place in places.items()
        if place.path or (name in SOURCES and SOURCES[name].generate)
    }
    if not places:
        raise NotReady(
            "no problems to train on: give --problems FILE, or add a source first with "
            "`ratchet data add`"
        )
    loaded = [
        problem
        for name, place in local.items()
        for problem in (read(name, place, console) if name in new else load(name, place)).problems
    ]
    return with_parts(loaded, [VALIDATION, HELDOUT]), [name for name in places if name not in local]


def _train(problems: Sequence[Problem]) -> list[Problem]:
    return [each for each in problems if each.split == "train" and not each.gated]


def _with_profile(base: str, given: Settings) -> Settings:
    """Return the settings with the base and a profile for this machine. A profile that the user
    named keeps its own settings.
    """
    if given.chosen:
        return replace(given, changes=(f"base={base}", *given.changes))
    name = "gpu" if gpus_here() else "pretrained"
    changes = [f"base={base}", "shipped_problems=[]", f"policy.benchmark={GATE}"]
    settings = replace(given, profile_name=name, chosen=True, changes=tuple(changes))
    if name == "pretrained":
        shape = shape_of_start(settings.profile)
        frozen = ", ".join(f'"{each}"' for each in lower_half(shape.layers)) if shape else ""
        changes.append(f"training.frozen=[{frozen}]")
        if shape:
            changes.append(f"training.learning_rate={learning_rate(shape.parameters):.2g}")
    return replace(settings, changes=(*changes, *given.changes))


def learning_rate(parameters: int) -> float:
    """Return the learning rate of a training of all weights on a CPU.

    It falls with the root of the number of parameters, so with the width, as Adam's best rate does
    (Yang et al. 2022, arXiv:2203.03466, table 3). It is that of the profile `pretrained` at its
    model's size, and not above that of the profile `embedded`: docs/measurements/learning.md.
    """
    return min(3e-4, 2e-5 * sqrt(134.5e6 / parameters))


def _fitted(settings: Settings, train: Sequence[Problem], given: Sequence[str]) -> Settings:
    """Return the settings with a step that the problems fill, and a layout for this machine's GPUs.

    given: the user's own changes, which come last and win. Raises NotReady if the model does not
    fit.
    """
    training, changes = settings.profile.training, list[str]()
    own = {change.partition("=")[0] for change in given}
    size = training.problems_per_step
    while size > 1 and size > len(train) // 2:  # cleaning may remove some
        size //= 2
    if size != training.problems_per_step and "training.problems_per_step" not in own:
        changes.append(f"training.problems_per_step={size}")
    shape, gpus = shape_of_start(settings.profile), gpus_here()
    if training.engine != "hf" and shape and gpus and "training.ranks" not in own:
        smallest = min(gpus, key=lambda gpu: gpu.memory)
        updated = training.model_copy(update={"problems_per_step": size})
        try:
            changes += plan(shape, smallest, len(gpus), updated).changes()
        except DoesNotFit as error:
            raise NotReady(str(error)) from error
    kept = [change for change in changes if change.partition("=")[0] not in own]
    return replace(settings, changes=(*kept, *settings.changes))


def _plan(
    settings: Settings, problems: Sequence[Problem], elsewhere: Sequence[str], measured: bool
) -> dict[str, str]:
    """Return the plan in rows: a name and a text."""
    profile, training = settings.profile, settings.profile.training
    gpus = gpus_here()
    machine = f"{len(gpus)} x {gpus[0].name}" if gpus else "CPU; no GPU was found"
    shape = shape_of_start(profile)
    millions = shape.parameters / 1e6 if shape else 0.0
    size = f", {millions:,.{1 if millions < 10 else 0}f} million parameters" if shape else ""
    limits = f"{training.prompt_tokens} tokens of prompt, {training.answer_tokens} of completion"
    command = " ".join(
        ["ratchet train", f"--profile {shlex.quote(settings.profile_name)}"]
        + [f"--set {shlex.quote(change)}" for change in settings.changes]
    )
    rows = {
        "home": str(settings.home.path),
        "base": f"{profile.base}{size}",
        "profile": f"{settings.profile_name} ({machine})",
        "problems": _split_text(problems, elsewhere),
        "lengths": limits + (f": {SHARE:.0%} of your texts" if measured else ": the profile's"),
        "training": f"{training.method.title}, {training.steps} steps of "
        f"{training.problems_per_step} problems x {training.group_size} completions, learning rate "
        f"{training.learning_rate:.2g}"
        + (", embedding and lower layers stay as they are" if training.frozen else ""),
        "gate": _gate_text(profile, problems),
        "memory": not_checked(profile)
        or f"needs {memory_gib(profile):.1f} GiB, {available_memory_gib():.1f} GiB are available",
        "the same": command,
    }
    return rows


def _split_text(problems: Sequence[Problem], elsewhere: Sequence[str]) -> str:
    parts = Counter("gated" if each.gated else each.split for each in problems)
    names = {
        "train": "for training", "validation": "to choose the checkpoint",
        "heldout": "held out for the gate", "demonstrations": "demonstrations",
        "gated": "of benchmarks, never trained on",
    }  # fmt: skip
    texts = [f"{parts[part]} {text}" for part, text in names.items() if parts[part]]
    later = f"; read from the hub at the start: {', '.join(elsewhere)}" if elsewhere else ""
    return f"{', '.join(texts)}{later}"


def _gate_text(profile: Profile, problems: Sequence[Problem]) -> str:
    policy = profile.policy
    if policy.benchmark != GATE:
        return f"{policy.benchmark}, which the profile names"
    tasks = sum(each.split == GATE and not each.gated for each in problems)
    level = next_level(policy.spending, policy.alpha, [])
    needed = wins_needed(0, tasks, level, policy.minimum_gain)
    if needed is None:
        return f"{tasks} held-out problems: too few for any promotion; add problems"
    return (
        f"{tasks} held-out problems: a first promotion needs at least {needed} more solved and "
        "none lost"
    )
