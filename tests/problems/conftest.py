"""The folder of real data; tests without their data are skipped."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

DATA = Path(
    os.environ.get("RATCHET_DATA", Path(__file__).resolve().parents[2].parent / "shared" / "data")
)


@pytest.fixture
def data() -> Callable[[str], Path]:
    """Return the function that gives the folder of a real data set, e.g. data("mbpp")."""

    def folder(name: str) -> Path:
        if not (DATA / name).is_dir():
            pytest.skip(f"no {DATA / name}: set RATCHET_DATA to the folder that holds {name}/")
        return DATA / name

    return folder
