"""A task in a folder, in the layouts of Harbor, Terminal-Bench and OpenEnv, in one form."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from problems.task_folders.folder import Folder, read_folder

VERIFIERS = "verifiers"
MARKERS = {"task.toml": "harbor", "openenv.yaml": "openenv", "task.yaml": "terminal-bench"}
DEPTH = 6  # folders below the given one in which tasks are looked for
MAX_TEXT = 1 << 20


@dataclass(frozen=True)
class TaskFolder:
    """context: files from which the image is built. solution, tests: files by path in their folder;
    solve and test: the script to start in each, "" if there is none. missing: what the layout needs
    and the folder lacks. unrunnable: why no attempt can run, whatever the image.
    """

    name: str
    kind: str
    instruction: str
    dockerfile: str
    context: Mapping[str, bytes]
    solution: Mapping[str, bytes]
    tests: Mapping[str, bytes]
    solve: str
    test: str
    missing: tuple[str, ...] = ()
    unrunnable: str = ""
    skipped: Mapping[str, str] = field(default_factory=dict)

    @property
    def solution_text(self) -> str:
        return texts(self.solution)

    @property
    def tests_text(self) -> str:
        return texts(self.tests)


def texts(files: Mapping[str, bytes]) -> str:
    """Return the text files, one after another."""
    return "\n".join(text for data in files.values() if (text := decoded(data)) is not None)


def decoded(data: bytes) -> str | None:
    """Return a file as text; None if it is not text, or long."""
    if len(data) > MAX_TEXT or b"\0" in data:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def find_tasks(path: Path) -> Iterator[tuple[Path, str]]:
    """Yield the task folders at and below a path, with their layout; links are not followed."""
    base = len(path.parts)
    for folder, names, files in os.walk(path, followlinks=False):
        names[:] = sorted(name for name in names if name != ".git")
        kinds = [kind for marker, kind in MARKERS.items() if marker in files]
        if "pyproject.toml" in files and is_verifiers(_start(Path(folder) / "pyproject.toml")):
            yield Path(folder), VERIFIERS  # Harbor folders may lie in it
        if kinds:
            yield Path(folder), kinds[0]
            names.clear()
        elif len(Path(folder).parts) - base >= DEPTH:
            names.clear()


def is_verifiers(pyproject: bytes) -> bool:
    """Return whether a pyproject.toml is that of an environment: it needs the package."""
    try:
        project = tomllib.loads(pyproject.decode("utf-8", "replace")).get("project", {})
        needs = project.get("dependencies", [])
        return any(re.match(r"verifiers\b(?!-)", each) for each in needs if isinstance(each, str))
    except (tomllib.TOMLDecodeError, AttributeError, TypeError, RecursionError):
        return False


def _start(path: Path) -> bytes:
    """Return a plain file's first bytes; nothing of anything else."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            return file.read(MAX_TEXT)
    except OSError:
        return b""


def read_task(path: Path, kind: str, name: str) -> TaskFolder:
    """Read a task's folder. What is broken or absent is in `missing`; nothing is run."""
    return {"harbor": _harbor, "openenv": _openenv, "terminal-bench": _terminal_bench}[kind](
        read_folder(path), name
    )


def _harbor(folder: Folder, name: str) -> TaskFolder:
    missing, facts = [], dict[str, Any]()
    try:
        facts = tomllib.loads(folder.text("task.toml"))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        missing.append(f"task.toml is no TOML: {error}")
    steps = bool(facts.get("steps"))
    context, solution, tests = map(folder.below, ("environment", "solution", "tests"))
    test = next((each for each in ("test.sh", "test.bat") if each in tests), "")
    solve = next((each for each in ("solve.sh", "solve.bat") if each in solution), "")
    if steps:
        solution = solution or _of_steps(folder, "solution")
        tests = tests or _of_steps(folder, "tests")
    else:
        missing += [each for each in ("instruction.md",) if not folder.text(each).strip()]
        missing += [f"tests/{each}" for each in ("test.sh",) if not test]
        missing += [f"solution/{each}" for each in ("solve.sh",) if not solve]
    table = facts.get("environment")
    environment: dict[str, Any] = table if isinstance(table, dict) else {}
    prebuilt = environment.get("docker_image")
    if "Dockerfile" not in context and not prebuilt and "docker-compose.yaml" not in context:
        missing.append("environment/Dockerfile")
    why = "the task has several steps" if steps else ""
    why = why or ("its image is prebuilt" if prebuilt else _services(context))
    why = why or ("it is for Windows" if f"{solve}{test}".count(".bat") else "")
    return TaskFolder(
        name=name, kind="harbor", instruction=folder.text("instruction.md"),
        dockerfile=folder.text("environment/Dockerfile"), context=context, solution=solution,
        tests=tests, solve=solve, test=test, missing=tuple(missing), unrunnable=why,
        skipped=folder.skipped,
    )  # fmt: skip


def _of_steps(folder: Folder, part: str) -> dict[str, bytes]:
    start = [path.split("/") for path in folder.files if path.startswith("steps/")]
    return {
        "/".join(parts[1:]): folder.files["/".join(parts)]
        for parts in start
        if len(parts) > 3 and parts[2] == part
    }


def _terminal_bench(folder: Folder, name: str) -> TaskFolder:
    facts, missing = _yaml(folder, "task.yaml")
    tests = folder.below("tests")
    files = {path: folder.files[path] for path in ("solution.sh", "solution.yaml", "run-tests.sh")
             if path in folder.files}  # fmt: skip
    missing += [f"tests/{each}" for each in ("*",) if not tests]
    missing += [each for each in ("run-tests.sh", "Dockerfile") if each not in folder.files]
    missing += [] if files.keys() - {"run-tests.sh"} else ["solution.sh"]
    instruction = facts.get("instruction") or ""
    if not isinstance(instruction, str) or not instruction.strip():
        missing.append("instruction in task.yaml")
    run = files.pop("run-tests.sh", b"")
    solve = "solution.sh" if "solution.sh" in files else ""
    return TaskFolder(
        name=name, kind="terminal-bench", instruction=str(instruction),
        dockerfile=folder.text("Dockerfile"), context=folder.files, solution=files,
        tests={**tests, "run-tests.sh": run} if run else tests,
        solve=solve, test="run-tests.sh" if run else "", missing=tuple(missing),
        unrunnable="" if solve or not files else "its solution is a list of key strokes",
        skipped=folder.skipped,
    )  # fmt: skip


def _openenv(folder: Folder, name: str) -> TaskFolder:
    facts, missing = _yaml(folder, "openenv.yaml")
    block = facts.get("validation")
    if not isinstance(block, dict):
        missing.append("the block `validation` of openenv.yaml")
    capabilities = _mapping(_mapping(block).get("capabilities"))
    oracle, verifier = (_mapping(capabilities.get(key)) for key in ("oracle", "verifier"))
    solve, test = (_inside(each) for each in (oracle.get("location"), verifier.get("entry")))
    execution = _mapping(_mapping(block).get("execution"))
    root, context = _inside(execution.get("context")) or ".", dict(folder.files)
    dockerfile = _inside(execution.get("dockerfile"))
    if not dockerfile:
        known = ("Dockerfile", "server/Dockerfile")
        dockerfile = next((each for each in known if each in folder.files), known[0])
    for what, path in (("the oracle", solve), ("the verifier", test), ("the image", dockerfile)):
        if path and path not in folder.files:
            missing.append(f"{path}, which is {what}")
    solution, tests = (_around(folder, path) for path in (solve, test))
    why = "" if solve and test else "its reward comes from its server, which needs its image"
    return TaskFolder(
        name=name, kind="openenv", instruction=folder.text("README.md"),
        dockerfile=folder.text(dockerfile),
        context=folder.below(root) if root != "." else context, solution=solution, tests=tests,
        solve=Path(solve).name, test=Path(test).name, missing=tuple(missing), unrunnable=why,
        skipped=folder.skipped,
    )  # fmt: skip


def _around(folder: Folder, path: str) -> dict[str, bytes]:
    """Return the files beside a script; only the script if that is the whole package."""
    beside = str(Path(path).parent)
    if beside != ".":
        return folder.below(beside)
    return {path: folder.files[path]} if path in folder.files else {}


def _inside(path: object) -> str:
    """Return a path of a manifest if it stays inside the package, else ""."""
    text = os.path.normpath(path) if isinstance(path, str) and path and "\0" not in path else ""
    return "" if text.startswith(("/", "..")) else text


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _services(context: Mapping[str, bytes]) -> str:
    return "it needs several containers" if "docker-compose.yaml" in context else ""


def _yaml(folder: Folder, path: str) -> tuple[dict[str, Any], list[str]]:
    try:
        facts = yaml.safe_load(folder.text(path))
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        return {}, [f"{path} is no YAML: {' '.join(str(error).split())[:120]}"]
    return (facts, []) if isinstance(facts, dict) else ({}, [f"{path} is no mapping"])
