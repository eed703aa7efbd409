"""Makes `problems/cleaning/gated_statements.json`, by which a gated task is known under any name:
`python -m measurements.gated_statements`.

A hash of the words of what each gated task of the sets at hand asks, in each form that upstream
gives it; no text. `RATCHET_DATA` names their folder.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from problems.cleaning.gating import STATEMENTS, words_hash
from problems.schema import Problem
from problems.sources.registry import load

DATA = Path(
    os.environ.get("RATCHET_DATA", Path(__file__).resolve().parents[1].parent / "shared" / "data")
)
FOLDERS = {
    "mbpp": "mbpp",
    "mbpp_sanitized": "mbpp",
    "humaneval": "humaneval",
    "bigcodebench": "bigcodebench",
    "leetcode": "leetcode",
}


def asked(problem: Problem) -> list[str]:
    """What a copy of the task may have as its statement: the prose, or the whole prompt where that
    is a signature with a docstring.
    """
    whole = [problem.starter_code] if problem.source in ("humaneval", "bigcodebench") else []
    return [problem.statement, *whole, problem.extra.get("instruct_prompt") or problem.statement]


def main() -> None:
    hashes: dict[str, list[str]] = {}
    for source, folder in FOLDERS.items():
        gated = [problem for problem in load(source, DATA / folder).problems if problem.gated]
        hashes[source] = sorted({words_hash(text) for problem in gated for text in asked(problem)})
        print(f"{source}: {len(gated)} tasks, {len(hashes[source])} hashes")
    lines = [
        f" {json.dumps(source)}: {json.dumps(found, separators=(',', ':'))}"
        for source, found in hashes.items()
    ]
    STATEMENTS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
