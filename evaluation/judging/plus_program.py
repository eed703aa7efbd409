"""The code around a completion in the program's process when EvalPlus's inputs run. This text is
sent there; nothing in it is trusted.

The completion is executed as in evalplus 0.3.1 (`eval/__init__.py`, `unsafe_execute`): in an empty
namespace, its output swallowed, each call under its own alarm, no input copied, the first exception
ends it. Results leave as a digest, or if only a tolerance can decide as [type, digest, value]:
equal digests are equal values in the sense of Python's ==. The expected digests stay with the
owner, so a program that claims one has computed it. It imports nothing of ours: the sandbox runs
this text as is.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import signal
import sys
import time
from collections.abc import Iterator
from types import FrameType
from typing import Any

# by how many frames evalplus's stack is deeper than ours when a completion is called, so that
# recursion to the limit ends alike
FRAMES = 20
# how much more wall time than CPU time an alarm allows: other processes may use the core
LOAD = 10.0
HUGE = 10**4300  # from here on Python writes no digits
WRITTEN = {int, str, type(None)}  # whose repr is the same for equal values, and for no others


class TimeoutException(Exception):
    pass


class Swallowed(io.StringIO):
    def read(self, *args: Any, **kwargs: Any) -> Any:
        raise OSError

    readline = readlines = read

    def readable(self, *args: Any, **kwargs: Any) -> bool:
        return False


class redirect_stdin(contextlib._RedirectStream):  # type: ignore[type-arg]
    _stream = "stdin"


@contextlib.contextmanager
def swallow_io() -> Iterator[None]:
    stream = Swallowed()
    with (
        contextlib.redirect_stdout(stream),
        contextlib.redirect_stderr(stream),
        redirect_stdin(stream),
    ):
        yield


def _late(number: int, frame: FrameType | None) -> None:
    raise TimeoutException("Timed out!")


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    signal.signal(signal.SIGPROF, _late)
    signal.signal(signal.SIGALRM, _late)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, LOAD * seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)


def run(
    code: str,
    entry_point: str,
    inputs: str,
    *,
    limits: float | list[float],
    view: str,
    whole: bool,
    reference: bool,
) -> Any:
    """Call the completion's function with all inputs.

    inputs: JSON text as problems/encoding.py writes it; limits: seconds for all, or for each. view:
    the part of a result that counts, see `counted`. whole: return every result, [type, digest,
    value]; else one digest over all. reference: of the canonical solution, [digest, whether a
    result is made of floats, {input: seconds} of the slow ones, seconds for all with their
    digests].
    """
    calls = [restored(one) for one in json.loads(inputs)]
    space: dict[str, Any] = {}
    results, floats, slow = [], False, {}
    digest = hashlib.sha256()
    sys.setrecursionlimit(1000 - FRAMES)
    with swallow_io():
        exec(code, space)
        function = space[entry_point]
    for at, arguments in enumerate(calls):
        begun = time.process_time()
        with time_limit(limits[at] if isinstance(limits, list) else limits), swallow_io():
            out = function(*arguments)
        if reference and (seconds := time.process_time() - begun) > 0.2:
            slow[str(at)] = seconds
        out = out is not None if reference and view == "not none" else counted(out, view)
        floats = floats or is_floats(out)
        if whole:
            alone = hashlib.sha256()
            feed(alone, out, reference)
            results.append([type(out).__name__, alone.hexdigest()[:32], numbers(out)])
        else:
            feed(digest, out, reference)
    if reference and not whole:
        return [digest.hexdigest(), floats, slow, round(time.process_time(), 2)]
    return results if whole else digest.hexdigest()


def counted(out: Any, view: str) -> Any:
    """Return the part of a result that counts. set: its elements, without order and number; not
    none: whether there is a value; any: nothing; else all of it.
    """
    if view == "set":
        return set(out)
    if view == "not none":
        return out if isinstance(out, bool) else out is not None
    return True if view == "any" else out


def is_floats(out: Any) -> bool:
    return isinstance(out, float) or (
        isinstance(out, (list, tuple))
        and bool(out)
        and all(isinstance(item, float) for item in out)
    )


def numbers(out: Any) -> Any:
    """Return a result that a tolerance may apply to: numbers, alone or in lists and tuples; None
    for any other.
    """
    kinds: tuple[Any, ...] = (bool, int, float, complex)
    for kind in kinds:
        if isinstance(out, kind):
            return kind(out)
    if isinstance(out, (list, tuple)):
        values = [numbers(item) for item in out]
        return None if any(item is None for item in values) else values
    return None


def feed(digest: Any, out: Any, reference: bool) -> None:
    """Add a result's form to a digest; a list is added item by item."""
    try:
        if isinstance(out, (list, tuple)):
            digest.update(
                b"%d in a list:" % len(out)
                if isinstance(out, list)
                else b"%d in a tuple:" % len(out)
            )
            for item in out:
                digest.update(form(item, reference).encode("utf-8", "surrogatepass") + b",")
        else:
            digest.update(form(out, reference).encode("utf-8", "surrogatepass"))
    except (RecursionError, ValueError, TypeError, OverflowError):
        digest.update(b"!" if reference else b"?")
    digest.update(b"\n")


def form(value: Any, reference: bool) -> str:
    """Return a text that is the same for values that are equal by Python's ==, and for no others.

    A value that equals nothing, such as NaN, becomes "!" for the canonical solution and "?" for a
    completion.
    """
    kind = type(value)
    if kind is str or value is None:
        return repr(value)
    if kind is int or kind is bool:
        return repr(int(value)) if -HUGE < value < HUGE else hex(value)
    if kind is float:
        if value - value != 0:  # infinity, or NaN, which does not equal itself
            return repr(value) if value == value else "!" if reference else "?"
        return form(int(value), reference) if value.is_integer() else repr(value)
    if kind is list or kind is tuple:
        plain = set(map(type, value)) <= WRITTEN
        inner = ",".join(map(repr, value) if plain else [form(item, reference) for item in value])
        return f"[{inner}]" if kind is list else f"({inner})"
    if isinstance(value, (str, int, float, list, tuple)):
        base: Any = next(base for base in (str, int, float, list, tuple) if isinstance(value, base))
        return form(
            base.__getnewargs__(value)[0] if base in (str, int, float) else base(value), reference
        )
    if isinstance(value, dict):
        pairs = sorted(
            form(key, reference) + ":" + form(item, reference) for key, item in value.items()
        )
        return "{" + ",".join(pairs) + "}"
    if isinstance(value, (set, frozenset)) or kind.__name__ in ("dict_keys", "dict_items"):
        return f"<{','.join(sorted(form(item, reference) for item in value))}>"
    if isinstance(value, (bytes, bytearray)):
        return "b" + bytes(value).hex()
    if isinstance(value, complex):
        return (
            form(value.real, reference)
            if value.imag == 0
            else f"c{form(value.real, reference)},{form(value.imag, reference)}"
        )
    if isinstance(value, range):
        return (
            f"r{len(value)},{value.start if value else ''},{value.step if len(value) > 1 else ''}"
        )
    if (
        getattr(kind, "__module__", "") == "numpy"
        and hasattr(value, "item")
        and getattr(value, "ndim", 1) == 0
    ):
        return form(value.item(), reference)
    if getattr(kind, "__module__", "") in ("decimal", "fractions"):
        top, bottom = value.as_integer_ratio()
        if bottom == 1:
            return form(top, reference)
        near = top / bottom
        return repr(near) if near.as_integer_ratio() == (top, bottom) else f"q{top}/{bottom}"
    return "!" if reference else "?"


def restored(value: Any) -> Any:
    """Decode a value like problems.encoding.decode, for the types that inputs contain."""
    if type(value) is list:
        return [restored(item) for item in value]
    if type(value) is not dict:
        return value
    if len(value) == 1 and (tag := next(iter(value))).startswith("$"):
        body = value[tag]
        if tag == "$int":
            return int(body, 16)
        if tag == "$float":
            return float(body)
        if tag == "$complex":
            return complex(*restored(body))
        if tag == "$dict":
            return {restored(key): restored(item) for key, item in body}
        return {"$tuple": tuple, "$set": set, "$frozenset": frozenset}[tag](restored(body))
    return {key: restored(item) for key, item in value.items()}
