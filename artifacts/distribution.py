"""The installed distribution: `ratchet-rl`, or `ratchet-judge`, whose packages are under `ratchet`.

`deploy/judge_wheel.py` builds the second from the same files.
"""

from __future__ import annotations

import re
from importlib import metadata

PREFIX = __name__.rpartition("artifacts.")[0]  # of module names: "ratchet." or ""
NAME = "ratchet-judge" if PREFIX else "ratchet-rl"
OTHER_NAMES = {"sklearn": "scikit-learn", "psycopg2": "psycopg2-binary"}  # of a module's package


def version() -> str:
    return metadata.version(NAME)


def missing_package(error: ModuleNotFoundError) -> str | None:
    """Return which extra installs the missing package, in one line; None if no extra does."""
    module = (error.name or "").partition(".")[0]
    wanted = _plain(OTHER_NAMES.get(module, module))
    for line in metadata.requires(NAME) or ():
        package = re.match(r"[\w.-]+", line)
        extra = re.search(r"extra == ['\"]([\w-]+)", line)
        if package and extra and _plain(package[0]) == wanted:
            return f"this needs {module}: pip install '{NAME}[{extra[1]}]'"
    return None


def _plain(name: str) -> str:
    return re.sub(r"[-_.]", "", name).lower()
