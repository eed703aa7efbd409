"""Rules for the source tree that import-linter cannot check.

They concern what a module imports while it loads, how files are named, and machine-specific paths.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PACKAGES = PROJECT["tool"]["importlinter"]["root_packages"]
HEAVY = {
    "torch",
    "ray",
    "vllm",
    "verl",
    "transformers",
    "datasets",
    "mlflow",
    "wandb",
    "tensordict",
    "pandas",
    "sklearn",
}
OPTIONAL = {"vllm"}  # installed separately on machines with a GPU
NO_SUBJECT = {"utils", "util", "helpers", "helper", "manager", "managers", "common", "misc"}
MODULES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imported_at_load(path: Path) -> Iterator[str]:
    """Yield the top-level packages that are imported when this file is imported.

    Imports inside functions, or only for the type checker, do not count.
    """
    waiting: list[ast.AST] = [parsed(path)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield (node.module or "").split(".")[0]
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in (
            getattr(node.test, "id", ""),
            getattr(node.test, "attr", ""),
        ):
            waiting.extend(node.orelse)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            waiting.extend(ast.iter_child_nodes(node))


@cache
def all_imports(path: Path) -> set[str]:
    nodes = list(ast.walk(parsed(path)))
    plain = {
        alias.name.split(".")[0]
        for node in nodes
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    return plain | {
        (node.module or "").split(".")[0]
        for node in nodes
        if isinstance(node, ast.ImportFrom) and node.level == 0
    }


def shipped_files() -> list[Path]:
    """Return the files that git tracks or would add."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [path for name in listed.stdout.split("\0") if name and (path := ROOT / name).is_file()]


def test_heavy_packages_are_imported_inside_functions() -> None:
    violations = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in MODULES
        if path.relative_to(ROOT).parts[0] not in ("verl_jobs", "decoding")
        for name in imported_at_load(path)
        if name in HEAVY | {"decoding"}
    }
    assert not violations


def test_imported_packages_are_declared_dependencies() -> None:
    project = PROJECT["project"]
    lines = [*project["dependencies"], *project["optional-dependencies"]["cluster"]]
    declared = {canonicalize_name(Requirement(line).name) for line in lines}
    brings = packages_distributions()
    known = sys.stdlib_module_names | set(PACKAGES)
    violations = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in MODULES
        for name in all_imports(path) - known - OPTIONAL
        if not declared & {canonicalize_name(distribution) for distribution in brings.get(name, [])}
    }
    assert not violations


def test_the_sandbox_imports_no_other_package() -> None:
    """Only a backend may import a client library.

    The module is named after the library, and imports it inside a function.
    """
    known, violations = sys.stdlib_module_names | {"sandbox"}, set()
    for path in (path for path in MODULES if path.is_relative_to(ROOT / "sandbox")):
        client = (
            {path.stem}
            if path.parent.name == "backends" and path.stem not in imported_at_load(path)
            else set()
        )
        violations |= {
            f"{path.relative_to(ROOT)}: {name}" for name in all_imports(path) - known - client
        }
    assert not violations


def test_artifacts_import_no_other_package() -> None:
    violations = {
        str(path)
        for path in MODULES
        if path.is_relative_to(ROOT / "artifacts")
        and all_imports(path) & (set(PACKAGES) - {"artifacts"})
    }
    assert not violations


def test_the_training_process_imports_only_dagster_pipes() -> None:
    violations = {
        str(path)
        for path in MODULES
        if path.is_relative_to(ROOT / "verl_jobs")
        and any(n.startswith("dagster") for n in all_imports(path) - {"dagster_pipes"})
    }
    assert not violations


def test_every_module_has_a_docstring() -> None:
    silent = [
        str(path.relative_to(ROOT))
        for path in MODULES
        if parsed(path).body and not ast.get_docstring(parsed(path))
    ]
    assert not silent


def test_every_file_is_named_after_its_subject() -> None:
    assert not [
        str(path.relative_to(ROOT))
        for path in shipped_files()
        if path.stem.lower() in NO_SUBJECT or path.parent.name.lower() in NO_SUBJECT
    ]


def test_no_file_contains_paths_of_one_machine() -> None:
    # split in two, so that this file does not match itself
    foreign = [
        "/wo" + "rk/",
        "/tmp/" + "env",
        "/ro" + "ot/.",
        "/opt/whe" + "els",
        "/home/" + "ubuntu",
    ]
    if ROOT.parent not in (Path("/"), Path("/tmp")):
        foreign.append(f"{ROOT}/")
    texts = [
        path
        for path in shipped_files()
        if path.suffix
        in (".py", ".md", ".yaml", ".yml", ".toml", ".lock", ".sh", ".txt", ".jinja", ".json", "")
    ]
    violations = [
        f"{path.relative_to(ROOT)}: {word}"
        for path in texts
        for word in foreign
        if word in path.read_text(encoding="utf-8", errors="ignore")
    ]
    assert not violations


def test_no_module_is_longer_than_400_lines() -> None:
    assert not [
        f"{path.relative_to(ROOT)}: {lines} lines"
        for path in MODULES
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > 400
    ]


def test_each_advice_to_restore_a_backup_names_the_command() -> None:
    lines = [f"{path.relative_to(ROOT)}: {line}" for path in MODULES for line in path.open()]
    advice = [line for line in lines if re.search(r"(restore .* from|put) a backup", line)]
    assert [line for line in advice if '"""' not in line and "ratchet restore" not in line] == []
