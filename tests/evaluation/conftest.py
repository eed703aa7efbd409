"""Fixtures: a small model with random weights, problems of the embedded family, a sandbox."""

from __future__ import annotations

from pathlib import Path

import pytest

from problems.embedded.heldout import heldout_tasks
from problems.embedded.settings import FamilyConfig
from problems.schema import Problem


@pytest.fixture(scope="session")
def problems() -> list[Problem]:
    return heldout_tasks(FamilyConfig(), 0, 24)


@pytest.fixture(scope="session")
def checkpoint(problems: list[Problem], tmp_path_factory: pytest.TempPathFactory) -> Path:
    from verl_jobs.sft.tiny_model import TinyModel, make

    folder = tmp_path_factory.mktemp("a checkpoint")
    make(TinyModel(hidden=32, layers=2), [problem.statement for problem in problems] * 4, folder)
    return folder
