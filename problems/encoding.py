"""Encode plain Python data as JSON text and back, without loss.

JSON has no tuple, set, bytes, complex or infinity, and only string keys. These are written as an
object with one key that begins with `$`, e.g. `{"$tuple": [1, 2]}`. The text is equal on every
machine: sets are ordered by their members' texts. The order of a dict is kept, because a program
can see it.
"""

from __future__ import annotations

import ast
import base64
import json
import math
from collections import Counter
from typing import Any

# Other JSON readers round larger numbers. They are written in hexadecimal, which also avoids
# Python's limit on decimal digits.
SAFE_INT = 2**53


def dumps(value: Any) -> str:
    """Return ASCII JSON. Raises TypeError, naming the type, if not plain data (see `encode`)."""
    return json.dumps(encode(value), ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def loads(text: str) -> Any:
    """Inverse of `dumps`; reads ordinary JSON too.

    Raises ValueError on broken JSON or an unknown tag.
    """
    return decode(json.loads(text))


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object. Raises ValueError for a key that occurs twice."""
    value = dict(pairs)
    if len(value) < len(pairs):
        key = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"an object has the key {key!r} twice")
    return value


def read_text(text: str) -> Any:
    """Return what `encode` would make of a value that is written as JSON or as Python, as pandas
    writes the lists of a table.

    Raises ValueError for other text, and for an object with a key twice.
    """
    try:
        return json.loads(text, object_pairs_hook=unique_keys)
    except ValueError as error:
        try:
            tree = ast.parse(text.strip(), mode="eval")
            for node in ast.walk(tree):
                if isinstance(node, ast.Dict):
                    unique_keys([(ast.unparse(key), None) for key in node.keys if key])
            return encode(ast.literal_eval(tree))
        except (SyntaxError, TypeError, ValueError, RecursionError, MemoryError):
            raise error from None


def encode(value: Any) -> Any:
    """Convert a value to data that JSON can hold.

    Plain data: None, bool, int, float, complex, str, bytes, list, tuple, set, frozenset, dict. A
    subclass (an enum, a named tuple) raises TypeError, because decoding would return another type.
    """
    kind = type(value)
    if value is None or kind in (bool, str):
        return value
    if kind is int:
        return value if abs(value) <= SAFE_INT else {"$int": hex(value)}
    if kind is float:
        return value if math.isfinite(value) else {"$float": str(value)}
    if kind is complex:
        return {"$complex": [encode(value.real), encode(value.imag)]}
    if kind is list:
        return [encode(item) for item in value]
    if kind is tuple:
        return {"$tuple": [encode(item) for item in value]}
    if kind in (set, frozenset):
        return {
            f"${kind.__name__}": sorted(
                (encode(item) for item in value), key=lambda item: json.dumps(item)
            )
        }
    if kind is bytes:
        return {"$bytes": base64.b64encode(value).decode("ascii")}
    if kind is dict:
        if all(type(key) is str and not key.startswith("$") for key in value):
            return {key: encode(item) for key, item in value.items()}
        return {"$dict": [[encode(key), encode(item)] for key, item in value.items()]}
    raise TypeError(
        f"a {kind.__name__} is not plain data: use None, bool, int, float, complex, str, "
        "bytes, list, tuple, set, frozenset or dict"
    )


def decode(value: Any) -> Any:
    """Inverse of `encode`. Raises ValueError on an unknown tag or one with unsuitable content."""
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1 and (tag := next(iter(value))).startswith("$"):
        try:
            return _untag(tag, value[tag])
        except (TypeError, ValueError, KeyError) as error:
            raise ValueError(f"{json.dumps(value)[:80]} is no {tag}: {error}") from error
    return {key: decode(item) for key, item in value.items()}


def _untag(tag: str, content: Any) -> Any:
    match tag:
        case "$int":
            return int(content, 16)
        case "$float":
            return float(content)
        case "$complex":
            real, imag = decode(content)
            return complex(real, imag)
        case "$bytes":
            return base64.b64decode(content, validate=True)
        case "$tuple":
            return tuple(decode(content))
        case "$set":
            return set(decode(content))
        case "$frozenset":
            return frozenset(decode(content))
        case "$dict":
            return {decode(key): decode(item) for key, item in content}
    raise ValueError(
        "known tags are $int, $float, $complex, $bytes, $tuple, $set, $frozenset, $dict"
    )
