"""Rows of LiveCodeBench, code generation (Jain et al. 2024, arXiv:2403.07974).

Read in the schema of the hub's
`livecodebench/code_generation_lite`, and tested on a hand-made file of that schema, not on the
dataset itself: `question_content`; `public_test_cases` as JSON text; `private_test_cases` as JSON
text or packed (base64 of zlib of a pickle of JSON text); `metadata` with `func_name` if the task
asks for a method.

Loading a pickle can run arbitrary code, so it is never loaded. Its single string is extracted, and
a pickle that holds anything else is rejected. Upstream has no solutions; the 6 s per test are those
of its harness.
"""

from __future__ import annotations

import base64
import binascii
import json
import pickletools
import zlib
from typing import Any

from problems.columns import ProblemError
from problems.reading.input_output import IMPORTS, Tests, entry_point, parsed, stdio_tests
from problems.reading.source import Row, text
from problems.schema import Problem
from sandbox.protocol import Limits

LIMITS = Limits.of_work(6.0, memory_mb=1024)
MAX_BYTES = 2**29  # maximum size of unpacked tests
# pickle operations without content of their own
FRAMING = {"PROTO", "FRAME", "MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT", "STOP"}


def convert(row: Row, where: str) -> Problem:
    """Convert a row of `test.jsonl` to `test6.jsonl`."""
    key, starter = text(row, "question_id", where), str(row.get("starter_code") or "")
    public, private = (
        parsed(row, "public_test_cases", where, []),
        private_cases(text(row, "private_test_cases", where), where),
    )
    metadata = (
        parsed(row, "metadata", where, {})
        if isinstance(row.get("metadata"), str)
        else row.get("metadata") or {}
    )
    name = metadata.get("func_name") if isinstance(metadata, dict) else None
    cases = [
        *_cases(public, "public_test_cases", where),
        *_cases(private, "private_test_cases", where),
    ]
    return Problem(
        problem_id=f"livecodebench/{key}",
        source="livecodebench",
        statement=text(row, "question_content", where).strip(),
        style="call" if name else "stdio",
        tests=_calls(cases, where)
        if name
        else stdio_tests(
            [case["input"] for case in cases], [case["output"] for case in cases], where
        ),
        entry_point=entry_point(str(name), starter) if name else None,
        starter_code=IMPORTS if name else "",
        visible_tests=len(public),
        limits=LIMITS,
        tags=tuple(
            str(tag) for tag in ("livecodebench", row.get("platform"), row.get("difficulty")) if tag
        ),
        split="heldout",
        licence="CC",
        gated=True,
        compare="exact" if name else "tokens",
        extra={"date": str(row.get("contest_date") or ""), "title": row.get("question_title")}
        | ({"signature": starter} if starter else {}),
    )


def private_cases(written: str, where: str) -> Any:
    """Return the tests from JSON text or upstream's packing, without executing anything.

    Raises ProblemError.
    """
    try:
        return json.loads(written)
    except (ValueError, RecursionError):
        pass  # packed
    try:
        unpacking = zlib.decompressobj()
        packed = unpacking.decompress(base64.b64decode(written, validate=True), MAX_BYTES)
        if not unpacking.eof:
            raise ValueError("cut off, or too long when unpacked")
        return json.loads(only_text(packed))
    except (ValueError, binascii.Error, zlib.error, RecursionError) as error:
        raise ProblemError(
            f"key 'private_test_cases' cannot be unpacked ({error})"[:200],
            "fetch the file again",
            where,
        ) from error


def only_text(pickled: bytes) -> str:
    """Return the string that a pickle of one string holds, without loading it.

    Raises ValueError on any other pickle.
    """
    texts = list[str]()
    for operation, argument, _ in pickletools.genops(pickled):
        if operation.name in ("UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"):
            texts.append(str(argument))
        elif operation.name not in FRAMING:
            raise ValueError(f"a pickle with {operation.name}, which is no text alone")
    if len(texts) != 1:
        raise ValueError(f"a pickle of {len(texts)} texts")
    return texts[0]


def _cases(value: Any, key: str, where: str) -> list[dict[str, str]]:
    if not isinstance(value, list) or not all(
        isinstance(case, dict) and {"input", "output"} <= set(case) for case in value
    ):
        raise ProblemError(
            f"key {key!r} is no list of objects with input and output",
            "fetch the file again",
            where,
        )
    return value


def _calls(cases: list[dict[str, str]], where: str) -> Tests:
    """Convert the cases of a method: its arguments are one per line, each as JSON."""
    try:
        return tuple(
            {
                "args": [json.loads(line) for line in case["input"].split("\n") if line.strip()],
                "kwargs": {},
                "expected": json.loads(case["output"]),
            }
            for case in cases
        )
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        raise ProblemError(
            f"a test of a method that is no JSON ({error})"[:200], "fetch the file again", where
        ) from error
