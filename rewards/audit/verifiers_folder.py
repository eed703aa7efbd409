"""A verifiers environment: a package whose rows and files are read, and whose code is not run.

Its tasks and rewards are Python that needs the package `verifiers`, often a model and a server, so
the checks that run something are not run. Harbor folders inside it are audited as such.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from problems.cleaning.fingerprints import known_task
from problems.cleaning.gating import gated_as
from problems.schema import Problem
from problems.task_folders.folder import Folder
from rewards.audit.findings import KNOWN, LAYOUT, LEAK, Finding
from rewards.audit.leaks import squeezed

PROMPTS = ("question", "prompt", "instruction", "problem", "input")
ANSWERS = ("answer", "solution", "expected", "target", "output")
LOADS = re.compile(r"Taskset|Harness|\bload_(?:environment|taskset)\b")
MIN_ANSWER = 20  # squeezed characters; a shorter answer may be in any prompt
MAX_ROWS = 2_000  # of a file


def verifiers_findings(folder: Folder) -> Iterator[Finding]:
    """Yield the findings on an environment's files."""
    code = [folder.text(path) for path in folder.files if path.endswith(".py")]
    if not any(map(LOADS.search, code)):
        yield Finding(LAYOUT, "fail", "no module has a Taskset, a Harness or load_environment")
    links = [f"{path}: {why}" for path, why in folder.skipped.items()]
    yield Finding(LAYOUT, "fail" if links else "pass", "; ".join(links)[:300])
    count = 0
    for where, prompt, answer in _rows(folder):
        count += 1
        if len(squeezed(answer)) >= MIN_ANSWER and squeezed(answer) in squeezed(prompt):
            yield Finding(LEAK, "fail", f"{where}: the prompt has the answer")
        problem = Problem(where, "audit", prompt, "assert", (), solutions=(answer,))
        match = known_task(problem)
        if task := gated_as(problem) or (match and match.task):
            yield Finding(KNOWN, "fail", f"{where}: {task}")
    why = "its rows come from code" if not count else f"{count} rows read"
    for check in (LEAK, KNOWN):
        yield Finding(check, "pass" if count else "skip", why)


def _rows(folder: Folder) -> Iterator[tuple[str, str, str]]:
    """Yield place, prompt and answer of each row in JSON files."""
    for path in sorted(folder.files):
        if path.endswith((".jsonl", ".json")):
            lines = folder.text(path).splitlines() if path.endswith("l") else [folder.text(path)]
            for number, line in enumerate(lines[:MAX_ROWS], 1):
                try:
                    value = json.loads(line)
                except (ValueError, RecursionError):
                    continue
                for at, row in enumerate(value if isinstance(value, list) else [value]):
                    prompt, answer = _text(row, PROMPTS), _text(row, ANSWERS)
                    if prompt and answer:
                        yield f"{path}: row {at + number}", prompt, answer


def _text(row: Any, names: tuple[str, ...]) -> str:
    """Return the first of these values, as text; messages one after another."""
    value = (
        next((row[name] for name in names if row.get(name)), "") if isinstance(row, dict) else ""
    )
    if isinstance(value, list):
        value = "\n".join(str(each.get("content", "")) for each in value if isinstance(each, dict))
    return value if isinstance(value, str) else json.dumps(value)
