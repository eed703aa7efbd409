"""Write what identifies gated tasks without their data: `python -m measurements.gated_statements`.

`problems/cleaning/gated_statements.json` holds a hash of the words of each gated task's statement,
in each form that upstream publishes; `fingerprints.json` those of its prose, solutions and tests.
Neither has text. `RATCHET_DATA` names the folder of the data sets.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from problems.cleaning.fingerprints import FILE, MAX_TESTS, fingerprint
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
    "humanevalplus": "humanevalplus",
    "mbppplus": "mbppplus",
}
PLUS = ("humanevalplus", "mbppplus")  # their statements are those of other sets


def statements(problem: Problem) -> list[str]:
    """Return the texts that a copy of the task may have as its statement.

    These are the prose and, where it is a signature with a docstring, the complete prompt.
    """
    prompt = [problem.starter_code] if problem.source in ("humaneval", "bigcodebench") else []
    return [problem.statement, *prompt, problem.extra.get("instruct_prompt") or problem.statement]


def stored(problem: Problem) -> dict[str, list[str]]:
    """Return a task's fingerprint, with a few of its tests spread over all of them."""
    whole = fingerprint(problem)
    step = -(-len(whole["tests"]) // MAX_TESTS) or 1
    return whole | {"tests": whole["tests"][::step]}


def main() -> None:
    hashes: dict[str, list[str]] = {}
    fingerprints: dict[str, dict[str, dict[str, list[str]]]] = {}
    for source, folder in FOLDERS.items():
        gated = [problem for problem in load(source, DATA / folder).problems if problem.gated]
        if source not in PLUS:
            hashes[source] = sorted(
                {words_hash(text) for problem in gated for text in statements(problem)}
            )
        fingerprints[source] = {one.problem_id: stored(one) for one in gated}
        print(f"{source}: {len(gated)} tasks, {len(hashes.get(source, ()))} hashes")
    lines = [
        f" {json.dumps(source)}: {json.dumps(words, separators=(',', ':'))}"
        for source, words in hashes.items()
    ]
    rows = [
        f" {json.dumps(source)}: {{\n"
        + ",\n".join(
            f"  {json.dumps(task)}: {json.dumps(hashes, separators=(',', ':'))}"
            for task, hashes in tasks.items()
        )
        + "}"
        for source, tasks in fingerprints.items()
    ]
    FILE.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")
    STATEMENTS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
