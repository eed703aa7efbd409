"""Commands in scripts and pipes: JSON, unwrapped lines, completion, suggestions, questions."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from resources.home import Home
from tests.cli.conftest import Called
from tests.finished_home import RUN, fill_ledger, write_home
from tests.journeys.demo_run import ratchet as command_line

PROBLEM = "embedded/heldout/1/0"  # the first task of the first gate of seed 1


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_home(tmp_path_factory.mktemp("a home with a rather long name") / ("x" * 90))
    fill_ledger(Home(folder))
    return folder


@pytest.mark.parametrize(
    "arguments",
    [
        "jobs list", f"jobs show {RUN}", "registry", "data show", f"data show {PROBLEM}",
        "data sources", "keys list", "benchmarks list", "status", "quality", f"samples {RUN}",
        f"draws {RUN}", f"failures {RUN}--heldout",
    ],
)  # fmt: skip
def test_lists_and_views_are_json_on_request(arguments: str, home: Path, ratchet: Called) -> None:
    code, output, errors = ratchet(home, *arguments.split(), "--json")
    assert (code, errors) == (0, "")
    assert json.loads(output) is not None


def test_jobs_list_and_show_agree(home: Path, ratchet: Called) -> None:
    listed = json.loads(ratchet(home, "jobs", "list", "--json")[1])
    for job in listed:
        shown = json.loads(ratchet(home, "jobs", "show", job["run"], "--json")[1])
        assert {key: shown[key] for key in job} == job
    assert listed


def test_a_line_does_not_wrap_in_a_pipe(home: Path, ratchet: Called) -> None:
    assert any(line.endswith(str(home)) for line in ratchet(home, "status")[1].splitlines())


def test_an_id_of_the_report_can_be_shown(home: Path, ratchet: Called) -> None:
    """Held-out tasks are in no dataset."""
    assert PROBLEM in ratchet(home, "data", "show", PROBLEM)[1]


def test_a_problem_has_no_frames_in_a_pipe(home: Path, ratchet: Called) -> None:
    lines = ratchet(home, "data", "show", PROBLEM)[1].splitlines()
    assert {f"# {PROBLEM}", "# tests", "# history"} <= set(lines)
    assert not [line for line in lines if set(line) & set("╭│╰")]
    assert not [line for line in lines if line.startswith("assert") and line.endswith(" ")]


@pytest.mark.parametrize(
    ("typed", "meant"), [("statsu", "status"), ("jobs lst", "list"), ("jobs list --jsn", "--json")]
)
def test_a_misspelt_command_is_answered_with_the_nearest(
    typed: str, meant: str, tmp_path: Path, ratchet: Called
) -> None:
    code, _, errors = ratchet(tmp_path, *typed.split())
    assert code == 2
    assert meant in errors


def test_a_change_needs_an_answer(tmp_path: Path, ratchet: Called) -> None:
    folder = write_home(tmp_path / "home")
    fill_ledger(Home(folder), promoted=True)
    code, _, errors = ratchet(folder, "rollback")
    assert code == 2
    assert "give --yes" in errors
    code, output, _ = ratchet(folder, "rollback", "--yes")
    assert code == 0
    assert "`ratchet rollback --to 2`" in output


@pytest.mark.slow
def test_the_shell_completes_commands(tmp_path: Path) -> None:
    completed = subprocess.run(
        command_line(),
        env={"_RATCHET_COMPLETE": "complete_bash", "COMP_WORDS": "ratchet st", "COMP_CWORD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.stdout.split() == ["status"]
