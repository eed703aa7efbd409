"""A profile's search space. Both bounds of each range are validated before anything starts.

In: a profile. Out: its ranges, and a point of the space as changes to the profile.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from resources.config.load import Layer, ProfileError, changed, explained, origin
from resources.config.profile import Profile
from resources.config.tuning import KeyRange
from verl_jobs.planner.preflight import check_settings

SECTION = "training."
CLIP = "training.clip"


def space_of(profile: Profile) -> Mapping[str, KeyRange]:
    """Return `tuning.space`, without the clip range if the algorithm ignores it.

    An algorithm with its own clipping rule refuses every other clip range.
    """
    return {
        key: span
        for key, span in profile.tuning.space.items()
        if not (key == CLIP and profile.training.method.clips)
    }


def excluded_keys(profile: Profile) -> str:
    """Return a line on the keys of `tuning.space` that are not searched, and why; else ""."""
    if space_of(profile).keys() == profile.tuning.space.keys():
        return ""
    return f"{CLIP} is not searched: {profile.training.algorithm} has its own clipping rule"


def check_search_space(
    profile: Profile, profile_layers: Sequence[Layer] = ()
) -> Mapping[str, KeyRange]:
    """Validate the search space and return it. profile_layers: of the profile, to name that of a
    range.

    Raises ProfileError, with layer, key and fix, for an unknown key, a bound that the profile
    refuses, and an empty space; CannotTrain for settings that cannot be trained with.
    """

    def refused(key: str, text: str) -> ProfileError:
        place = origin(profile_layers, ("tuning", "space", *filter(None, [key])))
        return ProfileError(f"{place}: tuning.space{text}")

    check_settings(profile.training)
    data, space = profile.model_dump(mode="json"), space_of(profile)
    if not space:
        text = f": {excluded_keys(profile)}, and it has no other key: add keys of `training`"
        raise refused("", text)
    for key, span in space.items():
        if not key.startswith(SECTION):
            text = f": {key} is not a key of `training`, and trials share all other sections"
            raise refused(key, f"{text}: leave it out, or use --set")
        for value in span.ends:
            try:
                profile_at = Profile.model_validate(changed(data, [change(key, value)]))
            except ValidationError as error:
                raise refused(key, f", with {change(key, value)}: {explained(error)}") from error
            check_settings(profile_at.training)
            typed = value_at(profile_at, key)
            if not span.choice and (isinstance(typed, bool) or not isinstance(typed, int | float)):
                raise refused(key, f": {key} is not a number: give it a choice")
            if span.log_uniform and isinstance(typed, int):
                raise refused(key, f": {key} is a whole number: give uniform, or a choice")
    return space


def value_at(profile: Profile, key: str) -> Any:
    """Return the value of a dotted key."""
    value: Any = profile
    for part in key.split("."):
        value = getattr(value, part)
    return value


def change(key: str, value: object) -> str:
    """Return `key=value` as `--set` takes it."""
    return f"{key}={value if isinstance(value, str) else json.dumps(value)}"


def whole(profile: Profile, key: str) -> bool:
    """Return whether the key's range holds only whole numbers."""
    span = space_of(profile)[key]
    return bool(span.uniform) and isinstance(value_at(profile, key), int)


def own_point(profile: Profile) -> dict[str, Any] | None:
    """Return the profile's values as a point of the space, or None if they lie outside it.

    This point is the first trial, with which the others are compared.
    """
    space = space_of(profile)
    point = {key: value_at(profile, key) for key in space}
    return point if all(value in space[key] for key, value in point.items()) else None
