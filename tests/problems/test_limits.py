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
    measure,
    measurement,
    proposals,
    propose,
    savings,
    with_limits,
)
from sandbox.protocol import LOAD, Limits, Verdict
from sandbox.sandbox import Sandbox, SandboxConfig, run_all

QUICK = Problem(
    "t/quick",
    "t",
    "",
    "call",
    ({"args": [2], "expected": 4},),
    "f",
    solutions=("def f(n): return n * n",),
)
SLOW = Problem(
    "t/slow",
    "t",
    "",
    "call",
    ({"args": [2], "expected": 4},),
    "f",
    solutions=("import time\ndef f(n):\n    time.sleep(0.6)\n    return 4",),
)
WRONG = Problem(
    "t/wrong",
    "t",
    "",
    "call",
    ({"args": [2], "expected": 4},),
    "f",
    solutions=("def f(n): return 0",),
)


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
    assert proposed["wall_s"] >= MARGIN * wall_s and proposed["cpu_s"] >= MARGIN * working * wall_s
    assert (
        proposed["memory_mb"] >= 2 * peak_mb if peak_mb else "memory_mb" not in proposed
    )  # 0: not measured


@pytest.mark.parametrize("source", [humaneval, humanevalplus, leetcode, mbpp, mbppplus])
def test_wall_limits_of_sources_allow_for_machine_load(
    source: ModuleType,
) -> None:
    of_source = [Limits(), source.LIMITS, *getattr(source, "SLOW", {}).values()]
    assert [limits.wall_s / limits.cpu_s for limits in of_source] == [LOAD] * len(of_source)


@pytest.mark.slow
def test_measured_limits_apply_only_when_chosen(tmp_path: Path) -> None:
    with Sandbox(SandboxConfig(workers=1)) as sandbox:
        rows = measure([QUICK, SLOW, WRONG], sandbox, repeat=2)
        assert [row.accepted for row in rows] == [True, True, False] and rows[2].proposed is None
        assert rows[1].wall_s >= 0.6 and rows[1].proposed and rows[1].proposed["wall_s"] >= 5
        (tmp_path / "problems").write_text("x")
        before = hash_folder(tmp_path)
        limits.write(rows, tmp_path)
        assert hash_folder(tmp_path) == before and limits.read(tmp_path) == rows
        write_choice(tmp_path, proposals([QUICK, SLOW, WRONG], rows))
        changed = with_limits([QUICK, SLOW, WRONG], read_choice(tmp_path))
        assert changed[1].content_hash != SLOW.content_hash and changed[2] == WRONG
        assert run_all(sandbox, [changed[1].job(SLOW.solutions[0], "job")])[0].verdict is Verdict.AC
    assert "as proposed" in savings([QUICK, SLOW, WRONG], rows)


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


def test_a_reference_without_a_verdict_raises_with_its_id() -> None:
    class Down(Sandbox):
        def run(self, jobs, repeat=1):  # type: ignore[no-untyped-def]
            from sandbox.protocol import Report

            return iter([Report(job.job_id, Verdict.INFRA, ()) for job in jobs])

    with pytest.raises(RuntimeError, match="t/quick"):
        measure([QUICK], Down())
