"""The judge command: one request per input line, one report per output line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from sandbox.judge import job_of
from sandbox.protocol import Limits

ADD = {
    "style": "call",
    "entry_point": "f",
    "prompt": "",
    "tests": [{"args": [1, 2], "kwargs": {}, "expected": 3}],
    "limits": {"wall_s": 20},
}
ECHO = {
    "style": "stdio",
    "entry_point": None,
    "tests": [{"stdin": "a\n", "stdout": "a\n"}],
    "limits": {"wall_s": 20, "cpu_s": 2, "memory_mb": 128, "output_kb": 9},
}
CHECK = {
    "style": "assert",
    "entry_point": "f",
    "prompt": "",
    "tests": "def check(candidate):\n    assert candidate(1) == 2\n",
}


def judge(lines: list[str], **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sandbox.judge"]
    return subprocess.run(
        command,
        input="\n".join(lines),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **env},
        timeout=60,
    )


def line(asked: Any, source: str, problem: dict[str, Any]) -> str:
    return json.dumps({"id": asked, "source": source, "problem": problem})


def test_answers_come_in_input_order_and_nothing_else_comes() -> None:
    asked = [
        line("slow", "import time\ntime.sleep(0.5)\ndef f(a, b):\n    return a + b", ADD),
        line("wrong", "def f(a, b):\n    return a", ADD),
        line(3, "print(input())", ECHO),
        line("check", "def f(x):\n    return x + 1", CHECK),
        line("wrong", "def f(a, b):\n    return a + b", ADD),
    ]
    found = judge(asked)
    assert found.returncode == 0
    answers = [json.loads(answer) for answer in found.stdout.splitlines()]
    assert [(answer["id"], answer["verdict"]) for answer in answers] == [
        ("slow", "AC"),
        ("wrong", "WA"),
        (3, "AC"),
        ("check", "AC"),
        ("wrong", "AC"),
    ]


def test_a_line_that_is_no_request_is_answered_and_the_rest_goes_on() -> None:
    found = judge(["{", "", line("x", "", {"style": "call"}), line("y", "print(input())", ECHO)])
    answers = [json.loads(answer) for answer in found.stdout.splitlines()]
    assert [answer["verdict"] for answer in answers] == ["INFRA", "INFRA", "AC"]
    assert (
        "line 1" in answers[0]["detail"]
        and "line 3" in answers[1]["detail"]
        and found.returncode == 0
    )


@pytest.mark.parametrize("value", ["much", 0, -1, True, [1], float("nan"), float("inf")])
def test_a_limit_that_is_none_is_named(value: object) -> None:
    with pytest.raises(ValueError, match="limit files is"):
        job_of(ECHO | {"limits": {"files": value}}, "", "job")


def test_a_limit_that_is_null_is_the_default() -> None:
    assert job_of(ECHO | {"limits": {"wall_s": None, "files": 9.0}}, "", "job").limits == Limits(
        files=9
    )


def test_no_line_no_answer() -> None:
    found = judge([])
    assert (found.returncode, found.stdout) == (0, "")


def test_a_number_of_workers_that_is_none_is_an_error_that_says_so() -> None:
    found = judge([], RATCHET_WORKERS="many")
    assert found.returncode == 2 and "RATCHET_WORKERS" in found.stderr and found.stdout == ""


def test_explain_shows_people_each_test_and_hides_what_they_may_not_see() -> None:
    problem = ADD | {
        "tests": [{"args": [1, 2], "expected": 3}, {"args": [4000, 5], "expected": 4005}],
        "visible_tests": 1,
    }
    command = [sys.executable, "-m", "sandbox.judge", "--explain"]
    found = subprocess.run(
        command,
        input=line("mine", "def f(a, b):\n    return 7", problem),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert found.returncode == 0 and "mine: WA, 0 of 2 tests" in found.stdout
    first, second = found.stdout.strip().splitlines()[-2:]
    assert first.split()[:2] == ["1", "WA"] and first.split()[-2:] == ["7", "3"]
    assert second.endswith("(hidden)") and "4005" not in found.stdout
    assert " MB" in found.stdout and "isolation" in found.stdout


def test_explain_writes_nothing_that_steers_a_terminal() -> None:
    command = [sys.executable, "-m", "sandbox.judge", "--explain"]
    source = "def f(a, b):\n    raise ValueError('\\x1b[2J\\r' + '\\u202e')"
    found = subprocess.run(
        command,
        input=line("x", source, ADD),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (
        "ValueError" in found.stdout
        and found.stdout.isprintable() is False
        and not set("\x1b\r\u202e") & set(found.stdout)
    )


def test_the_command_does_without_dagster() -> None:
    code = (
        "import sys; from cli.main import app\ntry:\n    app(['judge', '--help'])\n"
        "except SystemExit: pass\n"
        "assert 'dagster' not in sys.modules and 'torch' not in sys.modules"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, check=False, timeout=60
        ).returncode
        == 0
    )
