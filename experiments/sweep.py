"""`ratchet tune --sweep FILE`: write the profile's search space as a W&B sweep, offline.

In: a profile. Out: a file for `wandb sweep FILE`. Its agents run `ratchet train --seeds 1`, which
promotes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console

from artifacts.atomic import write_atomic
from experiments.search_space import check_search_space, excluded_keys, space_of, whole
from resources.config.load import layers
from resources.config.profile import Profile
from resources.config.tuning import KeyRange
from resources.home import NotReady
from verl_jobs.config.validation import SCORE


def write_sweep(
    file: Path, profile: Profile, profile_name: str, changes: Sequence[str], console: Console
) -> int:
    """Write the sweep's YAML file. Returns exit code 0; raises NotReady if the path is a folder."""
    if file.is_dir():
        raise NotReady(f"--sweep: {file} is a folder: give a file")
    text = yaml.safe_dump(sweep(profile, profile_name, changes), sort_keys=False, width=150)
    write_atomic(
        file,
        (
            f"# wandb sweep {file.name}    then, on each machine that trains: wandb agent "
            f"ENTITY/PROJECT/ID\n{text}"
        ),
    )
    if excluded := excluded_keys(profile):
        console.print(f"{excluded}.", highlight=False, soft_wrap=True)
    console.print(
        f"{file}: {len(space_of(profile))} keys. `wandb sweep {file}` registers it with W&B.",
        soft_wrap=True,
        highlight=False,
    )
    return 0


def sweep(profile: Profile, profile_name: str, changes: Sequence[str]) -> dict[str, Any]:
    """Return the sweep as W&B's schema defines it. Raises ProfileError."""
    space = check_search_space(profile, layers(profile_name, changes))
    training = profile.training
    set_options = [part for each in changes for part in ("--set", each)]
    return {
        "name": f"ratchet {profile_name}",
        "program": "ratchet",
        "method": "bayes",
        "metric": {"name": f"{SCORE}{training.validation.n}", "goal": "maximize"},
        "run_cap": profile.tuning.trials,
        "early_terminate": {
            "type": "hyperband",
            # Hyperband counts validations, and the first one is that of the start policy.
            "min_iter": 2,
            "eta": profile.tuning.reduction,
        },
        "parameters": {
            key: parameter(span, whole=whole(profile, key)) for key, span in space.items()
        },
        "command": [
            "ratchet",
            "train",
            "--profile",
            profile_name,
            "--seeds",
            "1",
            *set_options,
            "${args_no_hyphens}",
        ],
    }


def parameter(span: KeyRange, *, whole: bool) -> dict[str, Any]:
    """Return a range as a W&B distribution. W&B's own `log_uniform` expects logarithms as bounds,
    `log_uniform_values` the values.
    """
    if span.choice:
        return {"values": list(span.choice)}
    low, high = span.log_uniform or span.uniform or (0.0, 0.0)
    if whole:
        return {"distribution": "int_uniform", "min": int(low), "max": int(high)}
    return {
        "distribution": "log_uniform_values" if span.log_uniform else "uniform",
        "min": low,
        "max": high,
    }
