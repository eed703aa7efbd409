"""Write `problems/cleaning/gated_statements.json`: `python -m measurements.gated_statements`.

The file identifies a gated task under any name. It holds a hash of the words of each gated task's
statement, in each form that upstream publishes, and no text. `RATCHET_DATA` names the folder of the
data sets.
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


def statements(problem: Problem) -> list[str]:
    """Return the texts that a copy of the task may have as its statement.

    These are the prose and, where it is a signature with a docstring, the complete prompt.
    """
    prompt = [problem.starter_code] if problem.source in ("humaneval", "bigcodebench") else []
    return [problem.statement, *prompt, problem.extra.get("instruct_prompt") or problem.statement]


def main() -> None:
    hashes: dict[str, list[str]] = {}
    for source, folder in FOLDERS.items():
        gated = [problem for problem in load(source, DATA / folder).problems if problem.gated]
        hashes[source] = sorted(
            {words_hash(text) for problem in gated for text in statements(problem)}
        )
        print(f"{source}: {len(gated)} tasks, {len(hashes[source])} hashes")
    lines = [
        f" {json.dumps(source)}: {json.dumps(words, separators=(',', ':'))}"
        for source, words in hashes.items()
    ]
    STATEMENTS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
