"""verl's training rows: Eurus-2-RL-Data, PRIME's code rows, ScaleBox's, and what rLLM writes.

`prompt` is a chat or a text, and `reward_model.ground_truth` holds the tests; rLLM leaves both
empty and keeps its own row in `extra_info`. There is no solution, except `solutions` (ScaleBox) and
`extra_info.reference`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from problems.columns import ProblemError
from problems.prompt import messages
from problems.reading.cases import solved
from problems.reading.prose import chat_turns, programs, statement
from problems.reading.source import Record, Row
from problems.shapes import rllm
from problems.shapes.shape import RowShape


def _fits(row: Row) -> bool:
    reward: Any = row["reward_model"]
    return (
        isinstance(row["prompt"], (list, str))
        and isinstance(reward, Mapping)
        and (bool(reward.get("ground_truth")) or rllm.RLLM.matches(_info(row)))
    )


def _info(row: Row) -> Mapping[str, Any]:
    info = row.get("extra_info")
    return info if isinstance(info, Mapping) else {}


def read(row: Row, where: str) -> Record:
    """Read a row of `train.parquet` or `validation.parquet`."""
    if "cod" not in str(ability := row.get("ability") or "code"):  # code, coding, codegen
        raise ProblemError(f"the ability is {ability!r}", "only code is judged here", where)
    if not row["reward_model"].get("ground_truth"):
        return rllm.read(_info(row), where)
    system = [each["content"] for each in messages(row["prompt"]) if each["role"] == "system"]
    solutions = programs(row.get("solutions") or _info(row).get("reference"))
    task, truth = statement(row, "prompt", where), row["reward_model"]["ground_truth"]
    record = rllm.truth_tests(truth, "reward_model.ground_truth", where, task, solutions)
    record["statement"] = task
    if turns := chat_turns(row["prompt"]):
        record["extra"] = record.get("extra", {}) | turns
    elif system:
        record["system_prompt"] = "\n\n".join(system)
    return solved(record, solutions)


CHAT = RowShape(
    name="verl",
    about="Eurus-2-RL-Data, PRIME's code rows, rLLM's parquet for verl",
    keys=("data_source", "prompt", "reward_model"),
    read=read,
    used=("prompt", "reward_model", "solutions"),
    licence=None,
    fits=_fits,
)
