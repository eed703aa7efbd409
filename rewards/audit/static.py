"""Faults of a task folder that its files show, without running anything."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping

from problems.cleaning.fingerprints import known_task
from problems.cleaning.gating import gated_as
from problems.schema import Problem
from problems.task_folders.dockerfile import Image
from problems.task_folders.task_folder import MAX_TEXT, TaskFolder, decoded
from rewards.audit.findings import CONTAINED, KNOWN, LAYOUT, LEAK, NOTHING, Finding
from rewards.audit.git_objects import Unreadable, objects, stores
from rewards.audit.leaks import MIN_COPY, SHARE, copied, copied_lines, line_set, telling_lines

SECRET = re.compile(r"answer|truth|expected|solution|golden|oracle|reference_out|hidden", re.I)
SCRIPTS = (".py", ".sh", ".js", ".rb")
MAX_COMPARED = 50  # files of solution and tests that are compared with each script of the image
PATHS = re.compile(r"(?<![\w.$}/-])(/[\w.-]+(?:/[\w.-]+)+)")
RUNS = re.compile(r"(?:^|[;&|(]|\b(?:bash|sh|python3?|exec|timeout \S+))\s+(/[\w./-]+)", re.M)
WRITES = re.compile(r"(?:echo|printf)\s+[\"']?(\d+(?:\.\d+)?)[\"']?[^|\n;]*>\s*\S*reward\.txt")
OPENS = re.compile(r"^(if|for|while|case|until)\b|\{$")
CLOSES = re.compile(r"^(fi|done|esac|\})")


def static_findings(task: TaskFolder, image: Image) -> Iterator[Finding]:
    """Yield the findings on a task's files."""
    lacks = [f"missing: {each}" for each in task.missing]
    lacks += [f"{path}: {why}" for path, why in task.skipped.items()]
    if "docker-compose.yaml" not in task.context:  # which may name another context
        lacks += [f"the Dockerfile copies {each}, which is missing" for each in image.absent]
    lacks += [f"the Dockerfile has the line {each[:40]!r} …" for each in image.unknown[:1]]
    if lacks:
        yield Finding(LAYOUT, "fail", "; ".join(lacks)[:300])
    yield Finding(LAYOUT, "pass")
    yield from _within_reach(task, image)
    yield from _answers(task, image)
    yield from _history(task, image)
    if _unconditional(task.tests.get(task.test, b"").decode("utf-8", "replace")):
        yield Finding(NOTHING, "fail", f"{task.test} writes reward 1 whatever the tests say")
    yield _known(task)


def _within_reach(task: TaskFolder, image: Image) -> Iterator[Finding]:
    """Yield files of the solution or of the tests that the image has.

    Data that both need, as the input of a task, is no such file: its name says nothing.
    """
    for source in image.copies:
        first = posixpath.normpath(source).split("/")[0]
        if first in ("solution", "tests") and source in image.absent:
            yield Finding(CONTAINED, "fail", f"the Dockerfile copies {source}")
    judged = {
        data: path
        for files in (task.solution, task.tests)
        for path, data in files.items()
        if len(data) >= MIN_COPY
        and (path.endswith(SCRIPTS) or SECRET.search(posixpath.basename(path)))
    }
    lines = {
        path: telling_lines(text)
        for data, path in list(judged.items())[:MAX_COMPARED]
        if (text := decoded(data)) is not None
    }
    for place, content in image.files.items():
        copy = judged.get(content)
        if not copy and place.endswith(SCRIPTS) and (text := decoded(content)):
            inside = line_set(text)
            same = (path for path in lines if copied_lines(lines[path], inside) >= SHARE)
            copy = next(same, None)
        if copy:
            yield Finding(CONTAINED, "fail", f"the image has {place}, a copy of {copy}")
    for place in RUNS.findall(task.tests.get(task.test, b"").decode("utf-8", "replace")):
        if place in image.files:
            yield Finding(CONTAINED, "fail", f"{task.test} runs {place}, which a model can replace")
    yield Finding(CONTAINED, "pass")


def _answers(task: TaskFolder, image: Image) -> Iterator[Finding]:
    """Yield places where the model can read the solution or an expected output."""
    lines = telling_lines(task.solution_text)
    shares = {
        "the instruction": copied(lines, task.instruction[:MAX_TEXT]),
        "the Dockerfile": copied(lines, task.dockerfile[:MAX_TEXT]),
    }
    for place, data in image.files.items():
        if text := decoded(data):
            shares[place] = copied_lines(lines, line_set(text))
    for where, share in shares.items():
        if share >= SHARE:
            yield Finding(LEAK, "fail", f"{where} has {share:.0%} of the solution")
    made = set(image.files) | set(PATHS.findall("\n".join(image.runs)))
    for place in set(PATHS.findall(f"{task.tests_text}\n{task.solution_text}")) & made:
        name = posixpath.basename(place)
        if SECRET.search(name) and name not in task.instruction and not place.startswith("/tests/"):
            yield Finding(LEAK, "fail", f"the image has {place}, which the tests or solution read")
    sources = {posixpath.basename(place) for place in image.files}
    for place in image.files:
        name, end = posixpath.splitext(posixpath.basename(place))
        if end == ".pyc" and f"{name.split('.')[0]}.py" not in sources:
            yield Finding(
                LEAK, "fail", f"the image has {place}, compiled from a file that it lacks"
            )


def _history(task: TaskFolder, image: Image) -> Iterator[Finding]:
    """Yield what the Git stores in the image give away, whether reachable or not."""
    copies = copied_stores(task.context, image)
    lines = telling_lines(re.sub(r"^\+", "", task.solution_text, flags=re.M))
    tests = {data for path, data in task.tests.items() if len(data) >= MIN_COPY}
    for folder in copies:
        try:
            for kind, content in objects(task.context, folder):
                if kind == "tree":
                    continue
                text = content.decode("utf-8", "replace")
                if copied_lines(lines, line_set(text)) >= SHARE:
                    yield Finding(LEAK, "fail", f"a {kind} in {folder} has the solution")
                if content in tests:
                    yield Finding(CONTAINED, "fail", f"a {kind} in {folder} is one of the tests")
        except Unreadable as error:
            yield Finding(LEAK, "skip", f"{folder}: {error}")
    if image.clones:
        yield Finding(LEAK, "skip", "the image clones a repository, whose history was not read")
    yield Finding(LEAK, "pass", f"{len(copies)} Git stores read" if copies else "")


def copied_stores(context: Mapping[str, bytes], image: Image) -> list[str]:
    """Return the Git stores of the context that a COPY could reach."""
    sources = [posixpath.normpath(source.lstrip("/")) for source in image.copies]
    return [
        folder
        for folder in stores(context)
        if any(
            source == "." or f"{folder}/".startswith(f"{source}/") or "*" in source
            for source in sources
        )
    ]


def _unconditional(script: str) -> bool:
    """Return whether a script writes reward 1 outside any condition, and 0 nowhere after it."""
    depth, won = 0, False
    for line in (each.strip() for each in script.splitlines()):
        depth -= bool(CLOSES.match(line))
        if written := WRITES.search(line):
            plain = depth <= 0 and not re.search(r"&&|\|\||^(if|for|while|case)\b", line)
            value = float(written[1])
            if plain:
                won = value >= 1
            elif value < 1:
                won = False
        depth += bool(OPENS.search(line)) and not re.search(r"\b(fi|done|esac)\b", line)
        if re.match(r"exit\b|set -\w*e", line) and not won:
            return False
    return won


def _known(task: TaskFolder) -> Finding:
    programs = [
        text
        for path, data in task.solution.items()
        if path.endswith(".py") and (text := decoded(data))
    ]
    problem = Problem(task.name, "audit", task.instruction, "assert", (), solutions=tuple(programs))
    if gated := gated_as(problem):
        return Finding(KNOWN, "fail", gated)
    match = known_task(problem)
    detail = f"{match.task}: {match.kind} {match.detail}" if match else ""
    return Finding(KNOWN, "fail" if match else "pass", detail)
