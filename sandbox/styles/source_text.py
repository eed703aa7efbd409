"""Values, calls and assertions as Python source, for tests as people read them."""

from __future__ import annotations

from typing import Any


def literal(value: Any) -> str:
    """Return the `repr` of plain data, with set members ordered by their texts.

    The order in `repr` itself differs between processes.
    """
    text = repr(value)
    if "{" not in text:
        return text
    kind = type(value)
    if kind in (set, frozenset) and value:
        members = f"{{{', '.join(sorted(map(literal, value)))}}}"
        return members if kind is set else f"frozenset({members})"
    if kind is list:
        return f"[{', '.join(map(literal, value))}]"
    if kind is tuple:
        return f"({', '.join(map(literal, value))}{',' * (len(value) == 1)})"
    if kind is dict:
        return f"{{{', '.join(f'{literal(key)}: {literal(item)}' for key, item in value.items())}}}"
    return text


def call_text(name: str, test: dict[str, Any]) -> str:
    """Return the call of a function with a test's `args` and `kwargs`."""
    words = [f"{key}={literal(value)}" for key, value in (test.get("kwargs") or {}).items()]
    return f"{name}({', '.join([*map(literal, test.get('args', ())), *words])})"
