"""The command line: what answers at once, what is refused in one line, what may run side by side."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.pipelines.home_builder import HomeBuilder

ROOT = Path(__file__).parents[2]
HOLDER = """
import sys, time
from pathlib import Path
from resources import lease
lease.take(Path(sys.argv[1]), "chain-0001")
print("has it", flush=True)
time.sleep(60)
"""
LOADED = "import sys, cli.main as c; sys.argv = ['ratchet', {args}]\ntry: c.main()\nexcept SystemExit: pass\nprint('dagster' in sys.modules)"


def ratchet(
    home: Path, *args: str, stdin: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cli.main", *args]
    settings = os.environ | {"RATCHET_HOME": str(home)} | environment
    return subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, env=settings, input=stdin, check=False
    )


@pytest.mark.parametrize(
    "args",
    [
        ("--help",),
        ("status",),
        ("status", "--provenance"),
        ("judge",),
        ("demo", "--help"),
        ("data", "show", "--help"),
    ],
)
def test_what_must_answer_at_once_imports_no_dagster(
    home_builder: HomeBuilder, args: tuple[str, ...]
) -> None:
    code = LOADED.format(args=", ".join(map(repr, args)))
    environment = os.environ | {"RATCHET_HOME": str(home_builder.run_context.home.path)}
    found = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert found.stdout.splitlines()[-1] == "False", found.stderr


def test_status_names_the_champion_what_runs_and_what_was_interrupted(
    home_builder: HomeBuilder,
) -> None:
    home_builder.promoted("chain-0001-sft")
    told = ratchet(home_builder.run_context.home.path, "status").stdout
    assert "version 1, chain-0001-sft, installed as the first" in told and "nothing" in told


def test_status_of_a_home_that_is_not_there_says_what_to_do(tmp_path: Path) -> None:
    found = ratchet(tmp_path / "none", "status")
    assert (
        found.returncode == 0
        and "`ratchet demo` makes the first" in found.stdout
        and not (tmp_path / "none").exists()
    )


@pytest.mark.parametrize(
    ("args", "environment", "said"),
    [
        (("demo", "--profile", "smal"), {}, "did you mean small"),
        (("demo",), {"RATCHET_PROFILE": "nowhere.yaml"}, "no profile 'nowhere.yaml'"),
        (
            ("evaluate", "no-such-thing"),
            {},
            "no checkpoint 'no-such-thing': give a Hugging Face folder, or one of: none yet",
        ),
        (("data", "add", "mine"), {}, "unknown source 'mine': give --path or --hub"),
        (("data", "add", "mbpp", "--path", "/nowhere"), {}, "/nowhere does not exist"),
        (("data", "show"), {}, "no problems have been read yet"),
        (("data", "limits"), {}, "no references have been tried yet"),
        (("rollback",), {}, "there is no champion yet"),
        (("adapt", "/nowhere/at/all"), {}, "'/nowhere/at/all' is no folder"),
        (
            ("adapt", "/nowhere", "--set", "adaptation.shots=[]"),
            {},
            "adaptation.shots: Tuple should have at least 1 item",
        ),
        (("tune", "--sweep", "."), {}, "--sweep: . is a folder: give a file"),
        (
            ("tune", "--sweep", "s.yaml", "--set", "training.algorithm=gdpo"),
            {},
            "training.algorithm gdpo: ",
        ),
        (
            (
                "tune",
                "--sweep",
                "s.yaml",
                "--set",
                "tuning.space.training.algorithm={choice: [grpo, gdpo]}",
            ),
            {},
            "training.algorithm gdpo: ",
        ),
        (
            ("train", "--show", "--set", "training.learning_rate=.inf"),
            {},
            "training.learning_rate: Input should be a finite number",
        ),
        (("reviewer", "records", "--to", "."), {}, "--to: . is a folder: give a file"),
        (
            ("reviewer", "reinforce", "--from", ".", "--generator", "foo", "--to", "rv"),
            {},
            "foo is no folder, and no address of an endpoint",
        ),
        (("jobs", "stop", "chain-0007"), {}, "no run chain-0007 in "),
        (
            ("jobs", "list", "--address", "ray-head"),
            {},
            "no Ray answers at ray-head: give the dashboard's address, http://host:8265",
        ),
    ],
)
def test_what_a_user_can_mend_is_one_line_and_exit_code_two(
    tmp_path: Path, args: tuple[str, ...], environment: dict[str, str], said: str
) -> None:
    found = ratchet(tmp_path / "a home", *args, **environment)
    assert (
        found.returncode == 2
        and found.stderr.startswith("error: ")
        and said in found.stderr
        and len(found.stderr.splitlines()) == 1
    ), found.stderr


def test_a_home_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    found = ratchet(tmp_path / "file", "demo")
    assert found.returncode == 2 and "cannot be written to" in found.stderr


def test_too_little_memory_is_said_before_anything_starts(tmp_path: Path) -> None:
    profile = tmp_path / "greedy.yaml"
    profile.write_text("needs: {memory_gib: 1000000}", encoding="utf-8")
    found = ratchet(tmp_path / "home", "demo", "--profile", str(profile))
    assert (
        found.returncode == 2
        and "a run needs 1e+06" in found.stderr
        and not (tmp_path / "home" / "runs").exists()
    )


@pytest.mark.slow
@pytest.mark.parametrize("command", [("demo",), ("train", "--seeds", "2")])
def test_a_second_training_in_one_home_gets_one_line_and_exit_code_three(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path / "training.lease")],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    try:
        assert holder.stdout and holder.stdout.readline()
        found = ratchet(tmp_path, *command, "--profile", "small")
    finally:
        holder.kill()
        holder.wait()
    assert (
        found.returncode == 3
        and f"is training already: chain-0001 (process {holder.pid}) since" in found.stdout
        and len(found.stdout.splitlines()) == 1
    )


@pytest.mark.slow
def test_a_bad_row_of_a_source_is_named_and_the_others_are_taken(tmp_path: Path) -> None:
    own = tmp_path / "own.jsonl"
    good = '{"id": "1", "statement": "Double x.", "style": "call", "entry_point": "f", "tests": [{"args": [1], "expected": 2}]}'
    own.write_text(f'{good}\n{{"id": 2\n', encoding="utf-8")
    found = ratchet(tmp_path / "home", "data", "add", "own", "--path", str(own))
    assert (
        found.returncode == 0
        and f"{own}: line 2: broken JSON" in found.stdout
        and ": 1 problems, 0 of them gated" in found.stdout
    )
    shown = ratchet(tmp_path / "home", "data", "show")
    assert (
        shown.returncode == 0
        and f"own ({own}) was added and not read yet; the next run does: `ratchet demo`"
        in shown.stdout
    )


@pytest.mark.slow
def test_a_rollback_is_told_with_what_it_undid(home_builder: HomeBuilder) -> None:
    home_builder.promoted("chain-0001-sft")
    home_builder.promoted("chain-0002")
    began = time.monotonic()
    found = ratchet(home_builder.run_context.home.path, "rollback", "--reason", "it wrote poems")
    assert (
        found.returncode == 0
        and "version 2 (chain-0002) was taken back, version 1 (chain-0001-sft) is champion again."
        in found.stdout
    )
    assert "it wrote poems" in found.stdout and time.monotonic() - began < 60
