"""Reference pages of the interfaces: command line, Python API and file formats, as Markdown.

In: the Typer application, and the public classes and functions of each package. Out: the text of
docs/reference/*.md; `make docs` writes it.
"""

from __future__ import annotations

import ast
import dataclasses
import enum
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from typing import Any

import typer.main
from pydantic import BaseModel

from artifacts.manifest import Manifest
from cli.main import app
from evaluation.scorecard import Origin, Sample, Scorecard
from problems.schema import SCHEMA, SCHEMA_VERSION
from rewards.score import Score
from sandbox.protocol import (
    AssertTest,
    CallTest,
    Job,
    Limits,
    Report,
    StdioTest,
    TestResult,
    UnittestTest,
    Verdict,
)

API = {
    "sandbox": ("sandbox.protocol", "sandbox.config", "sandbox.sandbox"),
    "problems": ("problems.schema", "problems.dataset.rl_parquet"),
    "rewards": ("rewards.score", "rewards.composite"),
    "evaluation": (
        "evaluation.generation.completion_sources",
        "evaluation.scorecard",
        "evaluation.statistics.pass_at_k",
        "evaluation.promotion.comparison",
        "evaluation.promotion.gate",
    ),
    "artifacts": ("artifacts.manifest", "artifacts.store"),
    "serving": ("serving.gateway",),
}
MADE = "Made by `make docs` from the code; change the code, not this page."


def command_line() -> str:
    """Return the page of every `ratchet` command with its arguments and options."""
    root: Any = typer.main.get_command(app)
    intro = (
        f"# Command line\n\n{MADE}\n\nEvery command prints this text for itself with `--help`. "
        "`ratchet judge` reads its own options: see [judging](../explanation/judging.md).\n"
    )
    return "\n".join([intro, *_commands(root, "ratchet")])


def python_api() -> str:
    """Return the page of public classes and functions, a chapter a package."""
    chapters = [f"# Python API\n\n{MADE}\n"]
    for package, modules in API.items():
        chapters.append(f"## {package}\n\n{_text(importlib.import_module(package))}\n")
        for module in map(importlib.import_module, modules):
            chapters.append(f"### {module.__name__}\n\n{_text(module)}\n")
            chapters.extend(_entry(value) for value in _public(module))
    return "\n".join(chapters)


def file_formats() -> str:
    """Return the page of the files that a run reads and writes, with every field."""
    columns = "".join(f"| `{field.name}` | `{field.type}` |\n" for field in SCHEMA)
    verdicts = ", ".join(f"`{verdict}`" for verdict in Verdict)
    parts = [
        (
            f"# File formats\n\n{MADE}\n\nAll files are JSON, JSON lines or Parquet, and can be "
            "read without Ratchet.\n"
        ),
        f"## Problems\n\n`problems.parquet`, schema version {SCHEMA_VERSION}. "
        "`tests` and `extra` hold JSON (`problems/encoding.py`).\n\n"
        f"| column | type |\n| --- | --- |\n{columns}",
        "### Tests\n\nEach element of `tests` has the fields of the test class of its `style`.\n",
        *(_fields(test, 4) for test in (CallTest, StdioTest, AssertTest, UnittestTest)),
        _fields(Limits, 3),
        "## Jobs and reports\n\n"
        f"What the sandbox takes and returns. A verdict is one of {verdicts}.\n",
        *(_fields(part, 3) for part in (Job, Report, TestResult)),
        "## Scores of a reward\n",
        _fields(Score, 3),
        "## Scorecards\n\n`NAME.scorecard.json`, and `scorecard.json` in the folder of a score.\n",
        *(_fields(part, 3) for part in (Scorecard, Sample, Origin)),
        "## Manifests\n\n`manifest.json` in the folder of every artifact.\n",
        _fields(Manifest, 3),
    ]
    return "\n".join(parts)


def _commands(command: Any, name: str) -> Iterator[str]:
    for key in command.list_commands(None) if hasattr(command, "list_commands") else ():
        child = command.get_command(None, key)
        path = f"{name} {key}"
        level = "#" * len(path.split())
        yield f"{level} `{path}`\n\n{_plain(child.help or '')}\n"
        options = [p for p in child.params if not getattr(p, "hidden", False)]
        if rows := [_option(p) for p in options]:
            yield "| argument | type | default | meaning |\n| --- | --- | --- | --- |\n" + "".join(
                rows
            )
        yield from _commands(child, path)


def _option(parameter: Any) -> str:
    names = ", ".join(f"`{name}`" for name in [*parameter.opts, *parameter.secondary_opts])
    annotation = parameter.type_descriptor.annotation
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        kind = "one of " + ", ".join(f"`{option.value}`" for option in annotation)
    else:
        kind = getattr(annotation, "__name__", "") if isinstance(annotation, type) else ""
        kind = kind or str(annotation).split(".")[-1]
    if getattr(parameter, "is_flag", False):
        kind = "flag"
    if getattr(parameter, "multiple", False) or parameter.nargs == -1:
        kind = "list"
    default = getattr(parameter.default, "value", parameter.default)
    if parameter.required:
        shown = "required"
    else:
        shown = "" if default in (None, False, "", [], ()) else f"`{default}`"
    return f"| {names} | {kind} | {shown} | {_cell(parameter.help or '')} |\n"


def _public(module: Any) -> Iterator[Any]:
    """Classes and functions that the module defines itself, in the order of its lines."""
    values = [
        value
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (inspect.isclass(value) or inspect.isfunction(value))
        and value.__module__ == module.__name__
    ]
    yield from sorted(values, key=lambda value: inspect.getsourcelines(value)[1])


def _entry(value: Any) -> str:
    heading = f"#### {value.__name__}\n\n"
    if inspect.isfunction(value):
        return f"{heading}{_code(value, value.__name__)}\n{_text(value)}\n"
    if issubclass(value, enum.Enum):
        return f"{heading}{_text(value)}\n\n{', '.join(f'`{member.value}`' for member in value)}\n"
    if issubclass(value, BaseModel) or dataclasses.is_dataclass(value):
        return _fields(value, 4) + _methods(value)
    return f"{heading}{_text(value)}\n\n{_methods(value)}"


def _methods(value: type[Any]) -> str:
    return "".join(
        f"{_code(method, f'{value.__name__}.{name}')}\n{_text(method)}\n\n"
        for name, method in vars(value).items()
        if inspect.isfunction(method)
        and (not name.startswith("_") or (name == "__init__" and method.__doc__))
        and method.__doc__
    )


def _code(function: Any, name: str) -> str:
    signature = re.sub(r" at 0x[0-9a-f]+", "", str(inspect.signature(function)))
    return f"```python\n{name}{signature}\n```\n"


def _fields(model: type[Any], level: int) -> str:
    """Return a heading, the docstring, and a table of the fields with type, default and the comment
    in the source.
    """
    rows = "".join(
        (
            f"| `{name}` | `{_cell(kind)}` | {f'`{_cell(default)}`' if default else 'required'} | "
            f"{_cell(comment)} |\n"
        )
        for name, kind, default, comment in _annotated(model)
    )
    table = (
        f"| field | type | default | meaning |\n| --- | --- | --- | --- |\n{rows}" if rows else ""
    )
    return f"{'#' * level} {model.__name__}\n\n{_text(model)}\n\n{table}\n"


def _annotated(model: type[Any]) -> Iterator[tuple[str, str, str, str]]:
    """Name, type, default and comment of each field; a comment stands on the lines of its field."""
    source = textwrap.dedent(inspect.getsource(model))
    lines, body = source.splitlines(), ast.parse(source).body[0]
    assert isinstance(body, ast.ClassDef)
    for node in body.body:
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
            continue
        default = ast.unparse(node.value) if node.value else ""
        shown = lines[node.lineno - 1 : (node.end_lineno or node.lineno)]
        comments = [match.group(1) for line in shown if (match := re.search(r"\s#\s+(.*)", line))]
        comment = " ".join(text for text in comments if not text.startswith("noqa"))
        name = node.target.id
        field = getattr(model, "model_fields", {}).get(name)
        if field and field.serialization_alias:  # the key in files
            name = field.serialization_alias
            default = "" if field.is_required() else repr(field.default)
        yield name, ast.unparse(node.annotation), default, comment


def _text(value: Any) -> str:
    own = value.__doc__ or ""
    if dataclasses.is_dataclass(value) and own.startswith(f"{getattr(value, '__name__', '')}("):
        own = ""  # made by dataclasses
    return _plain(inspect.cleandoc(own))


def _plain(text: str) -> str:
    """Text in which Markdown finds neither tags nor links, code in backticks aside."""
    pieces = re.split(r"(`[^`]*`)", text)
    return "".join(
        piece
        if piece.startswith("`")
        else re.sub(r"([\[\]*_])", r"\\\1", piece.replace("<", "&lt;"))
        for piece in pieces
    )


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
