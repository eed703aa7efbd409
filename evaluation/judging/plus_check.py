"""EvalPlus's comparison with a tolerance (0.3.1, `eval/__init__.py`), as a checker of the sandbox:
this text runs apart from the program.

got: for each input [type, digest, numbers], from plus_program.py; expected: the same of the
canonical solution, with `atol` and the task's `oracle`. It imports nothing of ours.
"""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np


def check(args: Any, got: Any, expected: Any, **options: Any) -> bool:
    inputs, atol, oracle = json.loads(args[2]), expected["atol"], expected["oracle"]
    if type(got) is not list or len(got) != len(inputs):
        return False
    for arguments, (kind, digest, out), (expected_kind, expected_digest, value, floats) in zip(
        inputs, got, expected["outputs"], strict=True
    ):
        exact = digest == expected_digest
        if oracle == "root":
            if (
                not abs(
                    sum(
                        coefficient * math.pow(out, power)
                        for power, coefficient in enumerate(arguments[0])
                    )
                )
                <= atol
            ):
                return False
            continue
        if oracle == "or zero":
            exact = exact or out == 0
        elif oracle == "surface":
            exact = exact or abs(out - surface(*arguments)) <= atol
        elif oracle == "digits":
            exact = exact or out == digits(*arguments)
        if atol == 0 and floats:
            atol = 1e-6  # also for the inputs that follow
        if not exact and (
            atol == 0 or kind != expected_kind or out is None or not near(out, value, atol)
        ):
            return False
    # evalplus 0.3.1 counts no input of the "root" task as passed, so that every completion fails.
    return str(oracle) != "root"


def near(out: Any, value: Any, atol: float) -> bool:
    if isinstance(value, list) and len(out) != len(value):
        return False
    return bool(np.allclose(out, value, rtol=1e-07, atol=atol))


def surface(base_edge: float, height: float) -> int:
    slant_height = math.sqrt((base_edge / 2) ** 2 + height**2)
    return round(base_edge**2 + 4 * (base_edge * slant_height) / 2)


def digits(*numbers: int) -> int:
    texts = [str(number) for number in numbers]
    longest = max(map(len, texts))
    return sum(
        abs(int(a) - int(b)) for a, b in zip(*(text.zfill(longest) for text in texts), strict=True)
    )
