from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artifacts.hashing import hash_folder
from problems.columns import ProblemError
from problems.schema import Problem
from problems.sources import humaneval, humanevalplus, leetcode, mbpp, mbppplus
from problems.verification import limits
from problems.verification.chosen_limits import read_choice, write_choice
from problems.verification.limits import (
    MARGIN,
    MEGABYTES,
    SECONDS,
    measurement,
    proposals,
    propose,
    savings,
    with_limits,
)
from sandbox.protocol import LOAD, Limits, Verdict
from sandbox.sandbox import Sandbox, run_all


def toy(key: str, solution: str) -> Problem:
    tests = ({"args": [2], "expected": 4},)
    return Problem(f"t/{key}", "t", "", "call", tests, "f", solutions=(solution,))


QUICK = toy("quick", "def f(n): return n * n")
SLOW = toy("slow", "import time\ndef f(n):\n    time.sleep(0.1)\n    return 4")
OTHER = toy("other", "def f(n): return n + n")


@given(st.floats(0, 100), st.floats(0, 100), st.floats(0, 100))
def test_a_slower_reference_never_gets_tighter_limits(
    one: float, other: float, cpu_s: float
) -> None:
    low, high = sorted((one, other))
    assert propose(low, cpu_s, 0)["wall_s"] <= propose(high, cpu_s, 0)["wall_s"]
    assert propose(high, low, 0)["cpu_s"] <= propose(high, high, 0)["cpu_s"]


@given(st.floats(0, SECONDS[-1] / MARGIN), st.floats(0, 1), st.floats(0, MEGABYTES[-1] / 2))
def test_proposed_limits_leave_a_margin(wall_s: float, working: float, peak_mb: float) -> None:
    proposed = propose(wall_s, working * wall_s, peak_mb)
    assert proposed["wall_s"] >= MARGIN * wall_s
    assert proposed["cpu_s"] >= MARGIN * working * wall_s
    assert (
        proposed["memory_mb"] >= 2 * peak_mb if peak_mb else "memory_mb" not in proposed
    )  # 0: not measured


@pytest.mark.parametrize("source", [humaneval, humanevalplus, leetcode, mbpp, mbppplus])
def test_wall_limits_of_sources_allow_for_machine_load(
    source: ModuleType,
) -> None:
    of_source = [Limits(), source.LIMITS, *getattr(source, "SLOW", {}).values()]
    assert [limits.wall_s / limits.cpu_s for limits in of_source] == [LOAD] * len(of_source)


def test_measured_limits_apply_only_when_chosen(sandbox: Sandbox, tmp_path: Path) -> None:
    rows = [measurement(problem.problem_id, 0.3, 0.3, 1.0) for problem in (QUICK, SLOW)]
    (tmp_path / "problems").write_text("x")
    before = hash_folder(tmp_path)
    limits.write(rows, tmp_path)
    assert hash_folder(tmp_path) == before
    assert limits.read(tmp_path) == rows
    write_choice(tmp_path, proposals([QUICK, SLOW, OTHER], rows))
    changed = with_limits([QUICK, SLOW, OTHER], read_choice(tmp_path))
    assert changed[1].content_hash != SLOW.content_hash
    assert changed[2] == OTHER
    assert run_all(sandbox, [changed[1].job(SLOW.solutions[0], "job")])[0].verdict is Verdict.AC
    assert "as proposed" in savings([QUICK, SLOW], rows)


def test_a_proposal_never_raises_a_limit() -> None:
    tight = replace(QUICK, limits=Limits(wall_s=1.0, cpu_s=1.0, memory_mb=64))
    rows = [measurement(QUICK.problem_id, 0.9, 0.9, 60.0)]
    assert proposals([tight], rows) == {}
    assert "0 of 1 slot seconds" in savings([tight], rows)


def test_a_changed_problem_keeps_its_own_limits(tmp_path: Path) -> None:
    write_choice(tmp_path, proposals([QUICK], [measurement(QUICK.problem_id, 0.1, 0.1, 1.0)]))
    other = replace(QUICK, tests=({"args": [3], "expected": 9},))
    assert (
        with_limits([QUICK, other], read_choice(tmp_path))[1]
        == other
        != with_limits([QUICK, other], read_choice(tmp_path))[0]
    )


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"a": {}}',
        '{"a": {"wall_s": 1, "cpu_s": 1, "memory_mb": "much"}}',
        '{"a": {"wall_s": 0, "cpu_s": 1, "memory_mb": 9}}',
    ],
)
def test_a_broken_limits_file_is_refused_by_name(tmp_path: Path, text: str) -> None:
    (tmp_path / "limits.json").write_text(text)
    with pytest.raises(ProblemError, match=r"limits\.json"):
        read_choice(tmp_path)
