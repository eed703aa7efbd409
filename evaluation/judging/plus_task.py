"""One task of HumanEval+ or MBPP+, and the sandbox's job for a program and a set of its inputs.

In: a row of `HumanEvalPlus.jsonl` or `MbppPlus.jsonl`, of any release. Out: a `PlusTask`. Its job
sets an alarm for each call, max(1 s, 4 times the canonical solution's time), and for all calls,
min(60 s, their sum) + 2 s, as evalplus 0.3.1 does.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from evaluation.judging import plus_program
from problems.columns import ProblemError
from problems.encoding import dumps
from problems.reading.source import Row, text
from problems.sources.mbppplus import RESTORE
from sandbox.protocol import CallTest, Job, Limits

SETS = ("base", "plus")
MIN_S, FACTOR, MAX_S, GRACE_S = 1.0, 4.0, 60.0, 2.0
MEMORY_MB = 4096
VIEWS = {
    **dict.fromkeys(
        (
            "similar_elements",
            "find_char_long",
            "common_in_nested_lists",
            "extract_singly",
            "larg_nnum",
            "intersection_array",
            "find_dissimilar",
            "Diff",
        ),
        "set",
    ),
    **dict.fromkeys(("check_str", "text_match_three", "text_starta_endb"), "not none"),
    "are_equivalent": "any",
}
ORACLES = {  # MBPP's; HumanEval has find_zero: "root"
    "sum_div": "or zero",
    "surface_Area": "surface",
    "digit_distance_nums": "digits",
}


@dataclass(frozen=True)
class Expected:
    """The canonical solution's results for one set of inputs: one digest, or each result if a
    tolerance or an oracle may decide.
    """

    digest: str
    # For each input: type, digest, numbers, whether made of floats.
    outputs: tuple[tuple[str, str, Any, bool], ...] | None
    slow: dict[str, float]  # input -> seconds, for inputs over 0.2 s
    whole_s: float  # CPU time for all inputs and their digests


@dataclass(frozen=True)
class PlusTask:
    task_id: str
    prompt: str
    entry_point: str
    canonical: str
    atol: float
    inputs: Mapping[str, Sequence[Sequence[Any]]]  # base, plus
    view: str
    oracle: str
    content: str  # sha256 of the row, which decides every verdict

    @property
    def texts(self) -> Mapping[str, str]:
        return _texts(id(self), self)

    def call(
        self,
        code: str,
        inputs: str,
        *,
        limits: float | list[float],
        whole: bool = False,
        reference: bool = False,
    ) -> dict[str, Any]:
        """Return the arguments of `plus_program.run`. inputs: JSON text."""
        options = {"limits": limits, "view": self.view, "whole": whole, "reference": reference}
        return {"args": (code, self.entry_point, inputs), "kwargs": options}

    def job(self, job_id: str, program: str, which: str, expected: Expected) -> Job:
        """Return the job that checks `program` on the base or the plus inputs."""
        each = [
            max(MIN_S, FACTOR * expected.slow.get(str(at), 0.0))
            for at in range(len(self.inputs[which]))
        ]
        most = min(MAX_S, sum(each)) + GRACE_S
        most += 2 * expected.whole_s  # upstream compares faster than a digest is made
        limits = Limits(
            wall_s=plus_program.LOAD * most, cpu_s=most, memory_mb=MEMORY_MB, output_kb=64 * 1024
        )
        whole = expected.outputs is not None
        want: Any = (
            {"outputs": list(expected.outputs), "atol": self.atol, "oracle": self.oracle}
            if expected.outputs is not None
            else expected.digest
        )
        limit = MIN_S if max(each, default=MIN_S) == MIN_S else each
        call = CallTest(
            **self.call(program, self.texts[which], limits=limit, whole=whole), expected=want
        )
        checker = source_text("plus_check.py") if whole else None
        return Job(
            job_id,
            source_text("plus_program.py"),
            "call",
            (call,),
            "run",
            limits=limits,
            checker=checker,
        )


@cache
def source_text(name: str) -> str:
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


_INPUT_TEXTS: dict[int, tuple[PlusTask, dict[str, str]]] = {}


def _texts(key: int, task: PlusTask) -> dict[str, str]:
    """Return the inputs as JSON text, made once per task."""
    if key not in _INPUT_TEXTS or _INPUT_TEXTS[key][0] is not task:
        texts = {
            which: dumps([list(arguments) for arguments in task.inputs[which]]) for which in SETS
        }
        _INPUT_TEXTS[key] = (task, texts)
    return _INPUT_TEXTS[key][1]


def humaneval_task(row: Row, where: str) -> PlusTask:
    return _task(row, where, lambda inputs: inputs, {}, {"find_zero": "root"})


def mbpp_task(row: Row, where: str, exact: Collection[str] = ()) -> PlusTask:
    """Return a task of MBPP+. exact: functions whose results are compared exactly, not as sets."""
    number = int(text(row, "task_id", where).rsplit("/", 1)[-1])
    restore = _sets if number == 115 else RESTORE.get(number)
    return _task(
        row,
        where,
        lambda inputs: [restore(arguments) for arguments in inputs] if restore else inputs,
        {name: view for name, view in VIEWS.items() if name not in exact},
        ORACLES,
    )


def _sets(arguments: list[Any]) -> list[Any]:
    """Return the input of Mbpp/115, a list of sets; empty ones become dicts, as upstream."""
    return [[set(item) if isinstance(item, list) and item else {} for item in arguments[0]]]


def _task(
    row: Row, where: str, restore: Any, views: Mapping[str, str], oracles: Mapping[str, str]
) -> PlusTask:
    inputs = {}
    for which in SETS:
        rows = row.get(f"{which}_input") or []
        if not isinstance(rows, list) or not all(isinstance(each, list) for each in rows):
            raise ProblemError(
                f"key '{which}_input' is no list of argument lists", "fetch the file again", where
            )
        inputs[which] = restore(rows)
    if not inputs["base"]:
        raise ProblemError("no base inputs", "is this a file of evalplus?", where)
    name, prompt = text(row, "entry_point", where), text(row, "prompt", where)
    canonical = prompt + text(row, "canonical_solution", where)
    atol = float(row.get("atol") or 0)
    return PlusTask(
        task_id=text(row, "task_id", where),
        prompt=prompt,
        entry_point=name,
        canonical=canonical,
        atol=atol,
        inputs=inputs,
        view=views.get(name, "all"),
        oracle=oracles.get(name, ""),
        content=_hash(row),
    )


def _hash(row: Row) -> str:
    return hashlib.sha256(json.dumps(row).encode()).hexdigest()
