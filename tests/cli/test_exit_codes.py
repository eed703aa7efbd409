"""Bad input of any command: one line on stderr, nothing on stdout, exit code 2, no home made."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from resources import lease
from resources.home import Home
from tests.cli.conftest import Called

BAD = [
    (("nonsense",), "'nonsense'.*ratchet --help"),
    (("jobs", "nonsense"), "'nonsense'.*ratchet jobs --help"),
    (("status", "--nonsense"), "--nonsense.*ratchet status --help"),
    (("data", "add"), "'name'.*ratchet data add --help"),
    (("data", "sample", "mbpp", "--seed"), "--seed"),
    (("demo", "--profile", "smal"), "'smal'.*small"),
    (("demo", "--profile", "nowhere.yaml"), "'nowhere.yaml'"),
    (("config", "show", "--profile", "smal"), "'smal'"),
    (("config", "show", "--set", "training.x=1"), "training.x"),
    (("explain", "99"), "'99'"),
    (("why-not", "99"), "'99'"),
    (("provenance", "99"), "'99'"),
    (("card", "99"), "'99'"),
    (("rollback",), "no champion"),
    (("rollback", "--to", "x"), "--to.*integer"),
    (("promote", "nothing"), "'nothing'"),
    (("promote", "cli"), "no config.json"),
    (("deploy", "99"), "'99'"),
    (("deploy", "1", "--strategy", "slow"), "--strategy.*slow"),
    (("release", "status"), "ratchet deploy VERSION"),
    (("release", "abort"), "ratchet deploy VERSION"),
    (("evaluate", "no-such-thing"), "'no-such-thing'"),
    (("evaluate", "--completions", "/nowhere", "--benchmark", "humaneval"), "--data"),
    (("compare", "/nowhere"), "'/nowhere'"),
    (("failures", "nothing"), "'nothing'"),
    (("quality", "nothing"), "nothing"),
    (("reproduce", "nothing"), "'nothing'"),
    (("prefer", "/nowhere"), "/nowhere"),
    (("solve", "nothing"), "nothing"),
    (("jobs", "show", "chain-0007"), "chain-0007"),
    (("jobs", "logs", "chain-0007"), "chain-0007"),
    (("jobs", "stop", "chain-0007"), "chain-0007"),
    (("jobs", "watch", "chain-0007"), "chain-0007"),
    (("jobs", "profile", "chain-0007"), "chain-0007"),
    (("draws", "chain-0007"), "chain-0007"),
    (("samples", "chain-0007"), "chain-0007"),
    (("plan",), "--gpus"),
    (("plan", "--gpus", "8xNONE"), "NONE"),
    (("data", "add", "mine"), "'mine'.*--path.*--hub"),
    (("data", "add", "mbpp", "--path", "/nowhere"), "/nowhere"),
    (("data", "show"), "no problems"),
    (("data", "diff"), "no dataset"),
    (("data", "limits"), "no references"),
    (("data", "leaks", "/nowhere", "--benchmark", "humaneval"), "/nowhere"),
    (("data", "clean", "--from", "/nowhere", "--out", "/tmp/none"), "/nowhere"),
    (("adapt", "/nowhere/at/all"), "'/nowhere/at/all'"),
    (("adapt", "/nowhere", "--set", "adaptation.shots=[]"), "adaptation.shots.*1 item"),
    (("tune", "--sweep", "."), r"--sweep: \. .*folder"),
    (
        ("tune", "--sweep", "s.yaml", "--set", "training.algorithm=gropo"),
        "training.algorithm.*gropo",
    ),
    (
        (
            *("tune", "--sweep", "s.yaml", "--set"),
            "tuning.space.training.algorithm={choice: [grpo, gropo]}",
        ),
        "training.algorithm.*gropo",
    ),
    (
        ("train", "--show", "--set", "training.learning_rate=.inf"),
        "training.learning_rate.*finite",
    ),
    (("reviewer", "records", "--out", "."), r"--out: \. .*folder"),
    (
        ("reviewer", "reinforce", "--from", ".", "--generator", "foo", "--out", "rv"),
        "foo.*folder.*endpoint",
    ),
]


@pytest.mark.parametrize(("arguments", "message"), BAD, ids=[" ".join(args) for args, _ in BAD])
def test_bad_input_is_one_line_with_exit_code_two(
    ratchet: Called, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    code, out, error = ratchet(tmp_path / "a home", *arguments)
    assert code == 2, (code, out, error)
    assert out == "", (code, out, error)
    assert error.startswith("error: "), error
    assert len(error.splitlines()) == 1, error
    assert re.search(message, error), error


@pytest.mark.parametrize("command", ["status", "registry", "demo", "config show", "jobs list"])
def test_a_home_that_is_a_file_is_refused(ratchet: Called, tmp_path: Path, command: str) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    code, out, error = ratchet(tmp_path / "file", *command.split())
    assert code == 2
    assert out == ""
    assert len(error.splitlines()) == 1
    assert f"{tmp_path / 'file'} is a file" in error


def test_a_home_in_use_has_exit_code_three(ratchet: Called, tmp_path: Path) -> None:
    lease.take(Home(tmp_path).lease, "chain-0001")
    try:
        code, _, error = ratchet(tmp_path, "demo", "--profile", "small")
    finally:
        lease.release(Home(tmp_path).lease)
    assert code == 3
    assert "chain-0001" in error
    assert len(error.splitlines()) == 1
