"""Reads records: objects from JSON or from Python with known keys, and errors that name the key."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

OTHER_NAMES = {  # names that other datasets use and that do not look like ours
    "statement": ("prompt", "question", "description", "instruction", "problem"),
    "solutions": ("code", "answer", "canonical_solution"),
    "args": ("input", "inputs"),
    "stdin": ("input", "inputs"),
    "expected": ("output", "outputs", "result"),
    "stdout": ("output", "outputs", "expected"),
}
WORDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (bool, "a truth value"),
    (str, "a text"),
    ((int, float), "a number"),
    ((list, tuple), "a list"),
    (Mapping, "an object"),
    (type(None), ""),
)
LONGEST = 120  # characters of a value in an error


class Invalid(ValueError):
    """A record that cannot be used. key: where the fault is, such as `tests[3].stdout`."""

    def __init__(self, key: str, reason: str, fix: str) -> None:
        super().__init__(f"`{key}` {reason}: {fix}")
        self.key, self.reason, self.fix = key, reason, fix

    def inside(self, place: str) -> Invalid:
        """Return the same fault of a record that is a part of another."""
        return Invalid(f"{place}.{self.key}" if self.key else place, self.reason, self.fix)


class Key(NamedTuple):
    """What a key of a record may hold. A key that is not required may be absent or null."""

    expected: str  # in words, for the error
    fits: Callable[[Any], bool]
    required: bool = False
    nullable: bool = False  # null is a value


def read_keys(record: Any, keys: Mapping[str, Key]) -> dict[str, Any]:
    """Return the values of a record, without nulls that mean a default.

    Raises Invalid for a record that is no object, and for a key that is missing, unknown or has a
    wrong value. An unknown key is named with the nearest known one.
    """
    if not isinstance(record, Mapping):
        fix = f"give an object with the keys {', '.join(keys)}"
        raise Invalid("", f"is {shown(record)}", fix)
    unknown = [key for key in record if key not in keys]
    for name, key in keys.items():
        if key.required and (name not in record or (record[name] is None and not key.nullable)):
            other = next((each for each in unknown if means(each, name)), None)
            hint = "" if other is None else f", there is {other!r}, did you mean {name}?"
            raise Invalid(name, f"is missing{hint}", f"add it: {key.expected}")
    if unknown:
        hint = near(str(unknown[0]), keys).removeprefix(", ")
        raise Invalid(str(unknown[0]), "is no known key", hint or f"known are {', '.join(keys)}")
    for name, value in record.items():
        if (value is not None or keys[name].required) and not keys[name].fits(value):
            raise Invalid(name, f"is {shown(value)}", f"expected {keys[name].expected}")
    return {
        name: value for name, value in record.items() if value is not None or keys[name].nullable
    }


def is_text(value: Any) -> bool:
    return isinstance(value, str)


def is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def is_texts(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(map(is_text, value))


def is_number(value: Any) -> bool:
    """Whether it is a finite number."""
    return (
        isinstance(value, (int, float))
        and not isinstance(value, bool)
        and abs(value) <= float.fromhex("0x1.fffffffffffffp+1023")
    )


def means(key: Any, name: str) -> bool:
    """Return whether an unknown key is probably another spelling of this name."""
    written = str(key).lower()
    return written in OTHER_NAMES.get(name, ()) or bool(
        difflib.get_close_matches(written, [name], 1, 0.8)
    )


def near(name: str, known: Iterable[str]) -> str:
    """Return a suggestion for an unknown name; empty if no known name is close."""
    matches = difflib.get_close_matches(name, list(known), 1)
    return f", did you mean {matches[0]!r}?" if matches else ""


def shown(value: Any) -> str:
    """Describe a wrong value in JSON's terms, truncated: `a list [1, 2]`."""
    try:
        written = json.dumps(value, ensure_ascii=False, skipkeys=True, default=repr)
    except (RecursionError, ValueError):  # nested too deep, or within itself
        written = "..."
    kind = next((word for kinds, word in WORDS if isinstance(value, kinds)), type(value).__name__)
    # Half a surrogate pair cannot be printed.
    return f"{kind} {written}".strip()[:LONGEST].encode("utf-8", "backslashreplace").decode()
