"""Load a profile: the YAML files that it extends, then command-line changes, as one `Profile`."""

from __future__ import annotations

import copy
import dataclasses
import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import (
    ValidationError,
)

from resources.config.profile import Profile

FOLDER = Path(__file__).resolve().parents[2] / "pipelines" / "profiles"


class ProfileError(ValueError):
    """A profile that cannot be used: one line with the file, the key and how to fix it."""


@dataclass(frozen=True)
class Layer:
    """Values from one place: a YAML file, or a change on the command line."""

    name: str
    data: dict[str, Any]
    change: str = ""  # `section.key=value` from the command line

    def over(self, data: dict[str, Any]) -> dict[str, Any]:
        """Return `data` with this layer's values.

        A file's sections are merged; a change replaces its key.
        """
        return changed(data, [self.change]) if self.change else merged(data, self.data)

    def sets(self, location: Sequence[str | int]) -> bool:
        """Whether this layer has a value at this key (`("training", "steps")`) or above it. A key
        with dots is the same as its parts one in another.
        """
        return _sets(self.data, [name for part in location for name in str(part).split(".")])


def load_profile(
    name: str = "embedded", changes: Sequence[str] = (), *, unverified: bool = False
) -> Profile:
    """Load the profile of this name or path, with each change `section.key=value`.

    unverified: as `reward.unverified`. Raises ProfileError, which names the layer that a value came
    from.
    """
    profile_layers = layers(name, changes, unverified=unverified)
    data: dict[str, Any] = {}
    for layer in profile_layers:
        data = layer.over(data)
    try:
        return Profile.model_validate(data)
    except ValidationError as error:
        raise ProfileError(
            "; ".join(
                f"{origin(profile_layers, _location(each))}: {_explain(each)}"
                for each in error.errors()
            )
        ) from error


def layers(
    name: str = "embedded", changes: Sequence[str] = (), *, unverified: bool = False
) -> list[Layer]:
    """Return the layers over the defaults, of which the last one wins.

    They are the extended profiles, the profile itself, and each change. Raises ProfileError.
    """
    return [
        *_files(profile_path(name), ()),
        *(Layer(f"--set {change}", changed({}, [change]), change) for change in changes),
        *([Layer("--unverified", {"reward": {"unverified": True}})] if unverified else []),
    ]


def origin(profile_layers: Sequence[Layer], location: Sequence[str | int]) -> str:
    """Return the name of the layer that set this key last; "default" without one."""
    return next(
        (layer.name for layer in reversed(profile_layers) if layer.sets(location)), "default"
    )


def _sets(data: Any, location: Sequence[str]) -> bool:
    if not location or not isinstance(data, dict):
        return True
    keys = ((str(key).split("."), value) for key, value in data.items())
    return any(
        list(location[: len(names)]) == names and _sets(value, location[len(names) :])
        for names, value in keys
    )


def merged(data: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Return `data` with the values of `over`; sections are merged key by key."""
    both = {
        key: merged(data[key], value)
        if isinstance(value, dict) and isinstance(data.get(key), dict)
        else value
        for key, value in over.items()
    }
    return data | both


def _files(path: Path, extended_by: tuple[Path, ...]) -> list[Layer]:
    """Return the layer of the profile at `path`, after those that it extends."""
    if path in extended_by:
        raise ProfileError(f"{path}: extends: a circle of {len(extended_by)} profiles")
    data = _read(path)
    if isinstance(data.get("policy"), str):
        data["policy"] = policy_file(path.parent / data["policy"], path)
    _resolve_benchmarks(data, path.parent)
    base = data.pop("extends", None)
    if base is None:
        return [Layer(str(path), data)]
    if not isinstance(base, str):
        raise ProfileError(f"{path}: extends: give the name or path of a profile, got {base!r}")
    beside = path.parent / base
    try:
        parent = beside if beside.is_file() else profile_path(base)
    except ProfileError as error:
        raise ProfileError(f"{path}: extends: {error}") from error
    return [*_files(parent, (*extended_by, path)), Layer(str(path), data)]


def _resolve_benchmarks(data: dict[str, Any], folder: Path) -> None:
    """Make the path of each benchmark's YAML file absolute: it is relative to its profile."""
    evaluation = data.get("evaluation")
    named = evaluation.get("benchmarks") if isinstance(evaluation, dict) else None
    if not isinstance(named, list):
        return
    for at, entry in enumerate(named):
        settings = {"name": entry} if isinstance(entry, str) else entry
        name = settings.get("name") if isinstance(settings, dict) else None
        if isinstance(name, str) and name.endswith((".yaml", ".yml")):
            named[at] = settings | {"name": str((folder / name).absolute())}


def _read(path: Path, of: str = "a profile must be a mapping of sections") -> dict[str, Any]:
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except yaml.YAMLError as error:
        raise ProfileError(f"{path}: not YAML: {' '.join(str(error).split())}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ProfileError(f"{path}: cannot be read: {error}") from error
    if not isinstance(data, dict):
        raise ProfileError(f"{path}: {of}, got a {type(data).__name__}")
    return data


def explained(error: ValidationError) -> str:
    """Explain in one line why a profile, or a change to one, is invalid: each key with its fix."""
    return "; ".join(_explain(each) for each in error.errors())


def policy_file(path: Path, profile: Path) -> dict[str, Any]:
    """Read a promotion policy that a profile names, from the profile's folder.

    Raises ProfileError.
    """
    try:
        return _read(path, "a policy must be a mapping of keys such as alpha and margins")
    except ProfileError as error:
        raise ProfileError(f"{profile}: policy: {error}") from error


def changed(data: dict[str, Any], changes: Sequence[str]) -> dict[str, Any]:
    """Return the profile's data with each `section.key=value` applied, the value parsed as YAML.

    Raises ProfileError for a malformed change.
    """
    data = copy.deepcopy(data)
    for change in changes:
        key, equals, value = change.partition("=")
        *sections, last = key.strip().split(".")
        if not equals or not all([*sections, last]):
            raise ProfileError(
                f"{change!r} has no value: write section.key=value, e.g. training.steps=30"
            )
        place = data
        for section in sections:
            place = place.setdefault(section, {})
            if not isinstance(place, dict):
                raise ProfileError(f"{change!r}: {section} is not a section")
        try:
            place[last] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise ProfileError(
                f"{change!r}: the value is not YAML: {' '.join(str(error).split())}"
            ) from error
    return data


def profile_path(name: str) -> Path:
    """Find a profile: a name of ours, or a path. Raises ProfileError, which lists the names."""
    for path in (FOLDER / f"{name}.yaml", Path(name).expanduser()):
        if path.is_file():
            return path
    known = sorted(path.stem for path in FOLDER.glob("*.yaml"))
    near = difflib.get_close_matches(name, known, 1)
    raise ProfileError(
        f"no profile {name!r}{f', did you mean {near[0]}' if near else ''}: give one of "
        f"{', '.join(known)}, or the path of a YAML file"
    )


def _location(error: Any) -> Sequence[str | int]:
    """Return the key of an error; that of the whole profile begins with the one to change."""
    named = re.match(r"Value error, ([a-z_]+(?:\.[a-z_]+)+): ", error["msg"])
    return error["loc"] or (named[1].split(".") if named else ())


def _explain(error: Any) -> str:
    where = ".".join(str(part) for part in error["loc"])
    if error["type"] == "literal_error":
        known = re.findall(r"'([^']*)'", error["ctx"]["expected"])
        near = difflib.get_close_matches(str(error["input"]).lower(), known, 2, cutoff=0.4)
        hint = f", did you mean {' or '.join(near)}" if near else ""
        return f"{where}: no {error['input']!r}{hint}: known are {', '.join(known)}"
    if error["type"] == "string_pattern_mismatch" and "https" in error["ctx"]["pattern"]:
        return f"{where}: {error['input']!r} is no address: write it as http://host:port"
    if error["type"] not in ("extra_forbidden", "unexpected_keyword_argument"):
        # Show single values only, not a section, and no URL: it may hold a password.
        value = error["input"]
        hidden = isinstance(value, dict) or "://" in str(value)
        got = "" if hidden else f" (got {str(value)[:60]!r})"
        return f"{where}{': ' if where else ''}{error['msg'].removeprefix('Value error, ')}{got}"
    fields = _fields(error["loc"][:-1])
    near = difflib.get_close_matches(str(error["loc"][-1]), fields, 1)
    return (
        f"{where}: no such key, "
        f"{f'did you mean {near[0]!r}' if near else 'known are ' + ', '.join(fields)}"
    )


def _fields(loc: tuple[str | int, ...]) -> list[str]:
    """Return the keys that are known at this place of the profile."""
    model: Any = Profile
    for part in loc:
        annotation = model.model_fields[part].annotation if part in model.model_fields else model
        sections = [
            kind
            for kind in (annotation, *get_args(annotation))
            if hasattr(kind, "model_fields") or dataclasses.is_dataclass(kind)
        ]
        model = sections[0] if sections else model
    return (
        [field.name for field in dataclasses.fields(model)]
        if dataclasses.is_dataclass(model)
        else list(model.model_fields)
    )
