"""The judge command: one request per input line, one report per output line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

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
    "prompt": "Print the line.",  # words, no Python
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
    command = [sys.executable, "-m", "cli.main", "judge"]
    return subprocess.run(
        command,
        input="\n".join(lines),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **env},
    )


def line(job_id: Any, source: str, problem: dict[str, Any]) -> str:
    return json.dumps({"id": job_id, "source": source, "problem": problem})


@pytest.mark.slow
def test_the_judge_prints_one_report_per_line_in_input_order() -> None:
    requests = [
        line("slow", "import time\ntime.sleep(0.5)\ndef f(a, b):\n    return a + b", ADD),
        line("wrong", "def f(a, b):\n    return a", ADD),
        line(3, "print(input())", ECHO),
        line("check", "def f(x):\n    return x + 1", CHECK),
        line("wrong", "def f(a, b):\n    return a + b", ADD),
    ]
    completed = judge(requests)
    assert completed.returncode == 0
    reports = [json.loads(report) for report in completed.stdout.splitlines()]
    assert [(report["id"], report["verdict"]) for report in reports] == [
        ("slow", "AC"),
        ("wrong", "WA"),
        (3, "AC"),
        ("check", "AC"),
        ("wrong", "AC"),
    ]


def test_an_invalid_line_has_an_answer_of_its_own_and_costs_no_other() -> None:
    lines = [
        "{",
        "",
        line("x", "", {"style": "call"}),
        line("tests", "f = abs", {"style": "unittest", "entry_point": "f", "tests": [5]}),
        line("limits", "f = abs", ADD | {"limits": {"memory": 100}}),
        line("shown", "f = abs", ADD | {"visible_tests": "abc"}),
        line("checker", "f = abs", ADD | {"checker": "def check(:"}),
        line("cases", "f = abs", CHECK | {"style": "unittest", "tests": ["class T(:"]}),
        '{"id": "deep", "source": "", "problem": ' + "[" * 5000 + "]" * 5000 + "}",
        line("y", "print(input())", ECHO),
    ]
    completed = judge(lines)
    answers = [json.loads(answer) for answer in completed.stdout.splitlines()]
    assert completed.returncode == 0
    assert [answer["verdict"] for answer in answers] == ["INVALID"] * 8 + ["AC"]
    assert [answer.get("line") for answer in answers] == [1, 3, 4, 5, 6, 7, 8, 9, None]
    assert [answer.get("key") for answer in answers[1:7]] == [
        "tests",
        "tests[0]",
        "limits.memory",
        "visible_tests",
        "checker",
        "tests[0].source",
    ]
    assert answers[3]["fix"] == "did you mean 'memory_mb'?"


def test_empty_input_gives_no_output() -> None:
    completed = judge([])
    assert (completed.returncode, completed.stdout) == (0, "")


def test_an_invalid_number_of_workers_is_refused_by_name() -> None:
    completed = judge([], RATCHET_WORKERS="many")
    assert completed.returncode == 2
    assert "RATCHET_WORKERS" in completed.stderr
    assert completed.stdout == ""


def test_explain_shows_each_test_and_hides_hidden_ones() -> None:
    problem = ADD | {
        "tests": [{"args": [1, 2], "expected": 3}, {"args": [4000, 5], "expected": 4005}],
        "visible_tests": 1,
    }
    command = [sys.executable, "-m", "cli.main", "judge", "--explain"]
    completed = subprocess.run(
        command,
        input=line("mine", "def f(a, b):\n    return 7", problem),
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode == 0
    assert "mine: WA, 0 of 2 tests" in completed.stdout
    first, second = completed.stdout.strip().splitlines()[-2:]
    assert first.split()[:2] == ["1", "WA"]
    assert first.split()[-2:] == ["7", "3"]
    assert second.endswith("(hidden)")
    assert "4005" not in completed.stdout
    assert " MB" in completed.stdout
    assert "isolation" in completed.stdout


def test_explain_escapes_terminal_control_characters() -> None:
    command = [sys.executable, "-m", "cli.main", "judge", "--explain"]
    source = "def f(a, b):\n    raise ValueError('\\x1b[2J\\r' + '\\u202e')"
    completed = subprocess.run(
        command,
        input=line("x", source, ADD),
        capture_output=True,
        text=True,
        check=False,
    )
    assert "ValueError" in completed.stdout
    assert completed.stdout.isprintable() is False
    assert not set("\x1b\r\u202e") & set(completed.stdout)


def test_an_id_that_no_terminal_can_show_costs_no_line_its_answer() -> None:
    program = "def f(a, b):\n    return 3"
    requests = "\n".join(line(name, program, ADD) for name in ("\ud800", "next"))
    command = [sys.executable, "-m", "cli.main", "judge", "--explain"]
    completed = subprocess.run(command, input=requests.encode(), capture_output=True, check=False)
    assert (completed.returncode, completed.stderr) == (0, b"")
    assert b"\\ud800: AC" in completed.stdout
    assert b"next: AC" in completed.stdout


def test_the_judge_command_imports_neither_dagster_nor_torch() -> None:
    code = (
        "import sys; from cli.app.commands import app\ntry:\n    app(['judge', '--help'])\n"
        "except SystemExit: pass\n"
        "assert 'dagster' not in sys.modules and 'torch' not in sys.modules"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode
        == 0
    )
