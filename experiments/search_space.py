"""A profile's search space, checked against the profile: both bounds are validated before anything
starts.

In: a profile. Out: its ranges, the same for Ray Tune and Optuna, and a point of it as changes to
the profile.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from resources.config.load import ProfileError, changed, explained
from resources.config.profile import Profile
from resources.config.tuning import Span
from verl_jobs.planner.preflight import check_settings

SECTION = "training."
CLIP = "training.clip"


def space_of(profile: Profile) -> Mapping[str, Span]:
    """Return `tuning.space` without the clip range if the algorithm clips by its own rule: every
    trial that moved it would be refused.
    """
    return {
        key: span
        for key, span in profile.tuning.space.items()
        if not (key == CLIP and profile.training.method.clips)
    }


def excluded_keys(profile: Profile) -> str:
    """What of `tuning.space` is not searched and why, in a line; empty where all of it is."""
    if space_of(profile).keys() == profile.tuning.space.keys():
        return ""
    return (
        f"{CLIP} is left out of the search: {profile.training.algorithm} clips by a rule of its own"
    )


def check_search_space(profile: Profile) -> Mapping[str, Span]:
    """Return the space.

    Raises ProfileError, with key and fix, for an unknown key, a bound that the profile refuses, and
    an empty space; CannotTrain for a setting that no training can have.
    """
    check_settings(profile.training)
    data, space = profile.model_dump(mode="json"), space_of(profile)
    if not space:
        raise ProfileError(
            f"tuning.space: {excluded_keys(profile)}, and nothing else is in it: give other keys "
            "of `training`"
        )
    for key, span in space.items():
        if not key.startswith(SECTION):
            raise ProfileError(
                f"tuning.space: {key} is no key of `training`, and trials share all that "
                "comes before it: leave it out, or use --set"
            )
        for value in span.ends:
            try:
                profile_at = Profile.model_validate(changed(data, [change(key, value)]))
            except ValidationError as error:
                raise ProfileError(
                    f"tuning.space, where {change(key, value)}: {explained(error)}"
                ) from error
            check_settings(profile_at.training)
            now = value_at(profile_at, key)
            if not span.choice and (isinstance(now, bool) or not isinstance(now, int | float)):
                raise ProfileError(f"tuning.space: {key} is no number: give it a choice")
            if span.log_uniform and isinstance(now, int):
                raise ProfileError(
                    f"tuning.space: {key} is a whole number: give uniform, or a choice"
                )
    return space


def value_at(profile: Profile, key: str) -> Any:
    place: Any = profile
    for part in key.split("."):
        place = getattr(place, part)
    return place


def change(key: str, value: object) -> str:
    """As `--set` takes it."""
    return f"{key}={value if isinstance(value, str) else json.dumps(value)}"


def whole(profile: Profile, key: str) -> bool:
    """Whether only whole numbers lie between the ends of this key."""
    span = space_of(profile)[key]
    return bool(span.uniform) and isinstance(value_at(profile, key), int)


def domains(profile: Profile) -> dict[str, Any]:
    """As Ray Tune draws from it: both ends belong to it."""
    from ray import tune

    domains_by_key = {}
    for key, span in check_search_space(profile).items():
        if span.choice:
            domains_by_key[key] = tune.choice(list(span.choice))
        elif span.log_uniform:
            domains_by_key[key] = tune.loguniform(*span.log_uniform)
        elif span.uniform:
            low, high = span.uniform
            domains_by_key[key] = (
                tune.randint(int(low), int(high) + 1)
                if whole(profile, key)
                else tune.uniform(low, high)
            )
    return domains_by_key


def own_point(profile: Profile) -> dict[str, Any] | None:
    """Return the profile's own values, if they lie in the space: the trial that others are compared
    with.
    """
    space = space_of(profile)
    point = {key: value_at(profile, key) for key in space}
    return point if all(value in space[key] for key, value in point.items()) else None
