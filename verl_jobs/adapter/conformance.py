"""Whether a version of verl has what an adapter relies on.

In: a wheel of verl, its source, or its package. Out: a `ConformanceFinding` for each function, text
and setting. Files are read; nothing of that verl is imported.
"""

from __future__ import annotations

import ast
import importlib
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

from verl_jobs.config.overrides import overrides
from verl_jobs.config.scale import ScaleSettings
from verl_jobs.config.training import Training

SETTINGS = "settings"  # the area of verl's settings
SCHEMA = "trainer/config/_generated_ppo_trainer.yaml"
TRAININGS = (
    Training(algorithm="ppo"),
    Training(engine="vllm", ranks=8, algorithm="ppo", dynamic_sampling=True),
    Training(
        engine="vllm", ranks=8, scale=ScaleSettings(placement="separate_async", engine_gpus=2)
    ),
    Training(ranks=2, scale=ScaleSettings(placement="separate_async", engine_gpus=1)),
    Training(entropy_target=0.2),
)


@dataclass(frozen=True)
class ConformanceFinding:
    """One thing that an adapter relies on. fault: what is missing; empty if it fits."""

    area: str
    name: str
    fault: str = ""


def package_of(path: Path, into: Path) -> Path:
    """Return the folder of the package `verl` in a wheel, a source folder or the package itself.

    into: folder that a wheel is unpacked in. Raises FileNotFoundError.
    """
    if path.suffix == ".whl" and path.is_file():
        with zipfile.ZipFile(path) as wheel:
            wheel.extractall(into)
        path = into
    for folder in (path / "verl", path):
        if (folder / "trainer" / "main_ppo.py").is_file():
            return folder.absolute()
    raise FileNotFoundError(
        f"{path}: no trainer/main_ppo.py in it: give a wheel of verl (.whl), a folder of its "
        "source, or its installed package"
    )


def version_of(verl: Path) -> str:
    """Return the version that a package of verl states; empty if it has no such file."""
    file = verl / "version" / "version"
    return file.read_text(encoding="utf-8").strip() if file.is_file() else ""


def findings(verl: Path, adapter: str) -> list[ConformanceFinding]:
    """Return all findings for an adapter (`versions.ADAPTERS`), in the order of its list."""
    relied_on = importlib.import_module(f"{adapter}_relies")
    return [*_functions(verl, relied_on), *_texts(verl, relied_on), *_settings(verl)]


def _functions(verl: Path, relied_on: ModuleType) -> Iterator[ConformanceFinding]:
    for area, functions in relied_on.FUNCTIONS.items():
        for where, wanted in functions.items():
            existing = parameters(verl, where)
            if existing is None:
                yield ConformanceFinding(area, where, "does not exist")
            elif missing := [name for name in wanted if name not in existing]:
                yield ConformanceFinding(area, where, f"has no parameter {', '.join(missing)}")
            else:
                yield ConformanceFinding(area, where)


def _texts(verl: Path, relied_on: ModuleType) -> Iterator[ConformanceFinding]:
    for file, names in relied_on.TEXTS.items():
        path = verl / file
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        for name in names:
            yield ConformanceFinding(
                "texts", f"{file}: {name}", "" if name in text else "does not exist"
            )


def _settings(verl: Path) -> Iterator[ConformanceFinding]:
    """Check the settings of our overrides; those with + or ~ need not exist in verl."""
    schema = yaml.safe_load((verl / SCHEMA).read_text(encoding="utf-8"))
    files = {name: Path(name) for name in ("model", "train", "validation", "folder")}
    lines = [
        line
        for training in TRAININGS
        for line in overrides(training, seed=1, loggers=[], name="t", **files)
    ]
    for name in dict.fromkeys(line.partition("=")[0] for line in lines if line[0] not in "+~"):
        yield ConformanceFinding(SETTINGS, name, "" if _has(schema, name) else "does not exist")


def _has(schema: Any, name: str) -> bool:
    for part in name.split("."):
        if not isinstance(schema, dict) or part not in schema:
            return False
        schema = schema[part]
    return True


def parameters(verl: Path, where: str) -> list[str] | None:
    """Return the parameters of `file:Class.function` in verl; None if it does not exist."""
    file, _, name = where.partition(":")
    if not (verl / file).is_file():
        return None
    node: ast.AST = ast.parse((verl / file).read_text(encoding="utf-8"))
    for part in name.split("."):
        named = [each for each in getattr(node, "body", []) if getattr(each, "name", "") == part]
        if not named:
            return None
        node = named[-1]
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return None
    given = node.args
    names = [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return names[1:] if names[:1] in (["self"], ["cls"]) else names
