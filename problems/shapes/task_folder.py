"""Task folders of Harbor and Terminal-Bench, as problems of style `repository`.

`folder_rows(path)` yields a row for each folder whose tests need only Python and a shell; another
is an error with the reason. The answer is a shell script, like the solution of the folder.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from problems.columns import ProblemError
from problems.reading.source import Read, Record, Row
from problems.shapes.shape import RowShape
from problems.task_folders.dockerfile import Image, read_image
from problems.task_folders.needs import PYTEST, unrunnable
from problems.task_folders.task_folder import TaskFolder, decoded, find_tasks, read_task

LAYOUTS = ("harbor", "terminal-bench")
SHOWN = 6_000  # characters of the image's files in the statement
LIMITS = {"wall_s": 90.0, "cpu_s": 30.0, "memory_mb": 512, "output_kb": 1024}
FIX = "judge it with Harbor, or make its tests need only Python and a shell"


def task_folders(path: Path) -> bool:
    """Return whether a folder is a task, or has one in it."""
    return path.is_dir() and next(find_tasks(path), None) is not None


def folder_rows(path: Path) -> Iterator[Read]:
    """Yield a row for each task folder at or below a path."""
    for folder, kind in find_tasks(path):
        name = folder.name if folder == path else str(folder.relative_to(path))
        task = read_task(folder, kind, name) if kind in LAYOUTS else None
        image = read_image(task.dockerfile, task.context) if task else Image()
        why = unrunnable(task, image) if task else f"a folder of {kind} is no task of a shell"
        why = why or (f"it lacks {', '.join(task.missing)}" if task and task.missing else "")
        if why or task is None:
            yield str(folder), ProblemError(why, FIX, str(folder))
        else:
            yield str(folder), _row(task, image)


def _row(task: TaskFolder, image: Image) -> Row:
    test = {
        "files": _packed(image.files),
        "tests": _packed(task.tests),
        "test": task.test,
        "layout": task.kind,
        "workdir": image.workdir if image.workdir != "/" else "/app",
        "environment": image.environment,
        "runs": image.runs,
    }
    shown = _shown(image.files)
    return {
        "task_folder": re.sub(r"[^\w.-]+", "_", task.name),
        "instruction": f"{task.instruction.strip()}\n\nIt runs in {test['workdir']}.{shown}",
        "test": test,
        "script": _script(task),
        "needs": list(PYTEST) if "pytest" in task.tests_text else [],
    }


def _shown(files: Mapping[str, bytes]) -> str:
    """Return the names of an image's files, and the short ones of text."""
    parts, room = [f"\n\nFiles: {', '.join(sorted(files)[:100])}"] if files else [], SHOWN
    for path, data in sorted(files.items()):
        content = decoded(data) or ""
        if content.strip() and len(content) <= room:
            parts.append(f"\n\n{path}:\n```\n{content.rstrip()}\n```")
            room -= len(content)
    return "".join(parts)


def _script(task: TaskFolder) -> str:
    """Return the solution as one script, which writes its other files first."""
    others = {path: data for path, data in task.solution.items() if path != task.solve}
    lines = [
        f"mkdir -p '/solution/{Path(path).parent}' && base64 -d > '/solution/{path}' <<'END'\n"
        f"{base64.b64encode(data).decode()}\nEND\n"
        for path, data in sorted(others.items())
    ]
    return "".join(lines) + task.solution.get(task.solve, b"").decode("utf-8", "replace")


def _packed(files: Mapping[str, bytes]) -> dict[str, str]:
    return {path: base64.b64encode(data).decode() for path, data in sorted(files.items())}


def read(row: Row, where: str) -> Record:
    """Read a row of `folder_rows`."""
    return {
        "problem_id": row["task_folder"],
        "statement": row["instruction"],
        "style": "repository",
        "tests": [row["test"]],
        "solutions": [row["script"]],
        "limits": LIMITS,
        "extra": {"language": "bash", "packages": row["needs"]},
    }


TASK_FOLDER = RowShape(
    "task_folder",
    "folders of Harbor and Terminal-Bench whose tests need only Python and a shell",
    ("task_folder", "instruction", "test", "script"),
    read,
    ("task_folder", "instruction", "test", "script", "needs"),
)
