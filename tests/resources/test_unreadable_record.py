"""A pipeline run's record that cannot be read costs that run, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from artifacts.integrity import CorruptArtifact
from resources.home import Home
from resources.run_record import next_id, readable, records, unreadable
from tests.open_runs import damage_record, open_test_run

ROOT = Path(__file__).parents[2]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path)
    for name in ("chain-0001", "chain-0002"):
        run = open_test_run(home.runs, name)
        run.change(state="done")
    damage_record(home.runs, "chain-0002")
    return home


def test_the_other_records_are_read_and_it_is_named(home: Home) -> None:
    assert [record.id for record in readable(home.runs)] == ["chain-0001"]
    [line] = map(str, unreadable(home.runs).values())
    assert f"{home.path}/records.db: chain-0002: " in line


def test_its_name_is_not_given_to_another_run(home: Home) -> None:
    assert next_id(home.runs) == "chain-0003"


def test_no_run_is_opened_while_its_held_out_tasks_are_unknown(home: Home) -> None:
    with pytest.raises(CorruptArtifact, match="chain-0002"):
        records(home.runs)
    with pytest.raises(CorruptArtifact, match="chain-0002"):
        open_test_run(home.runs, "chain-0003")


@pytest.mark.slow
def test_definitions_load_in_its_home(home: Home) -> None:
    environment = os.environ | {"RATCHET_HOME": str(home.path)}
    subprocess.run(
        [sys.executable, "-c", "import pipelines.definitions"],
        env=environment,
        cwd=ROOT,
        check=True,
    )
