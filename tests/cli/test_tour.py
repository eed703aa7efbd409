"""`ratchet tour`, the first command of a new user."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Called


def test_the_version_is_that_of_the_package(tmp_path: Path, ratchet: Called) -> None:
    assert ratchet(tmp_path, "--version")[:2] == (0, "ratchet 0.1.0\n")


@pytest.mark.slow
def test_the_tour_accepts_the_right_program_alone_and_writes_no_home(
    tmp_path: Path, ratchet: Called
) -> None:
    home = tmp_path / "home"
    code, output, _ = ratchet(home, "tour")
    assert code == 0
    verdicts = [line for line in output.splitlines() if line.startswith("the ")]
    assert verdicts == [
        "the right program: AC, 9 of 9 tests",
        "the wrong program: WA, 5 of 9 tests",
        "the cheating program: WA, 0 of 9 tests",
    ]
    assert "79.1 % │ 69.3 to 86.3 %" in output
    assert not home.exists()
