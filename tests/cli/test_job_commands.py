"""Trainings as the command line tells them: from the files of a home in which a run was begun, killed, and never decided."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import threading
import time
from io import StringIO
from pathlib import Path

import pytest
import yaml
from rich.console import Console

from cli.draws import show_draws
from cli.jobs.control import resume, stop, watch
from cli.jobs.show import list_jobs, print_manifest, show_job, show_logs
from cli.jobs.submissions import list_submissions
from cli.samples import show_samples
from cli.status import show_status
from pipelines.launch import prepare_run, resume_settings
from resources import lease
from resources.home import Home, NotReady
from resources.progress import Progress
from resources.ray.head import HOLDERS, free_ports
from resources.run_record import PipelineRun, open_run
from resources.settings import Settings
from rewards.composite import RewardConfig
from tests.journeys.chain import wait_until
from verl_jobs import faults, samples
from verl_jobs.config.training import Curriculum, Training
from verl_jobs.curriculum import draws
from verl_jobs.job import VALIDATION, TrainingJob
from verl_jobs.trainer import trainer_lease as owner

HELD = """
import signal, sys, time
from pathlib import Path
from resources import lease
signal.signal(signal.SIGTERM, signal.SIG_DFL)
lease.take(Path(sys.argv[1]), "study-a")
time.sleep(600)
"""
IN_BACKGROUND = """
import signal, time
from dagster._utils.interrupts import capture_interrupts
from pipelines.process import restore_sigint
signal.signal(signal.SIGINT, signal.SIG_IGN)
restore_sigint()
try:
    with capture_interrupts():  # as each of its runs does
        pass
    print("runs", flush=True)
    time.sleep(600)
except KeyboardInterrupt:
    print("ended")
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("RATCHET_HOME", str(tmp_path))
    made = Home(tmp_path)
    pipeline_run = open_run(
        made.runs,
        "chain-0001",
        kind="chain",
        base_seed=1,
        profile="small",
        why="t",
        champion=None,
        changes=["training.algorithm=rloo"],
    )
    folder = pipeline_run.folder / "training" / "abc"
    folder.mkdir(parents=True)
    job = TrainingJob(
        folder=str(folder), chain="chain-0001", start="start", train="t", validation="v", inputs={"start": "0" * 64},
        training=Training(algorithm="rloo"), reward=RewardConfig(), reward_hash="f" * 64, isolation="auto", seed=1001,
    )  # fmt: skip
    job.write()
    rows = [
        {"step": step, "data": {"critic/score/mean": step / 10, "timing_s/step": 2.0}}
        for step in range(1, 5)
    ]
    rows.insert(0, {"step": 0, "data": {VALIDATION: 0.25}})
    (folder / "metrics-001.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8"
    )
    (folder / "trainer.log").write_text("one\ntwo [red]\nthree\n", encoding="utf-8")
    wrong = samples.Sample(
        "embedded/a",
        "def solve(x):\n    return x",
        -0.9,
        "WA",
        0.2,
        {"correctness": -1.0, "format": 0.1},
    )
    right = samples.Sample(
        "embedded/b",
        "def solve(x):\n    return 2 * x",
        1.0,
        "AC",
        1.0,
        {"correctness": 0.9, "format": 0.1},
    )
    samples.write(folder, 4, [right, wrong, right])
    return made


def said(command: object, *given: object) -> str:
    console = Console(file=StringIO(), width=140)
    assert command(*given, Settings.read().home, console) == 0  # type: ignore[operator]
    out = console.file.getvalue()  # type: ignore[attr-defined]
    assert isinstance(out, str)
    return out


def test_the_list_says_how_far_each_run_is(home: Home) -> None:
    line = next(line for line in said(list_jobs).splitlines() if "chain-0001" in line)
    assert all(
        part in line
        for part in ("interrupted", "4 of 20", "0.400", "25.0%", "small training.algorithm=rloo")
    )


def test_a_run_that_trains_is_told_as_training(home: Home) -> None:
    lease.take(home.lease, "chain-0001")
    try:
        assert "trains" in said(list_jobs)
    finally:
        lease.give_back(home.lease)


def test_one_run_is_shown_with_its_algorithm_and_curve(home: Home) -> None:
    text = said(show_job, None)
    assert (
        "RLOO (Ahmadian et al. 2024, arXiv:2402.14740)" in text
        and "0: 25.0%" in text
        and "reward, mean of 5 steps" in text
    )


@pytest.fixture
def pipeline_run(home: Home) -> PipelineRun:
    """That run with two stages done and one at work."""
    found = PipelineRun(home.runs / "chain-0001")
    for name in ("raw_problems", "verified_problems"):
        with found.stage(name) as stage:
            stage.made += 1
            stage.say(f"{name} said")
    Progress(found.progress_file, "checkpoint").tell("begin")
    return found


def test_a_watched_run_that_has_ended_is_drawn_whole(pipeline_run: PipelineRun) -> None:
    pipeline_run.change(state="done", decision="promote")
    text = said(watch, "chain-0001")
    assert (
        "✓ problems read" in text
        and "verified_problems said" in text
        and "reinforcement learning with verl" in text
    )
    assert (
        "reward, mean of 5 steps  0.100 → 0.250  step 4" in text
        and "validation pass@1  0: 25.0 %" in text
    )
    assert (
        "profile small training.algorithm=rloo" in text
        and text.splitlines()[-1] == "chain-0001: promoted"
    )


def test_a_watched_run_is_followed_until_it_lets_go_of_its_lease(
    home: Home, pipeline_run: PipelineRun
) -> None:
    console = Console(file=StringIO(), width=140, force_terminal=True, highlight=False)

    def ends() -> None:
        wait_until(lambda: "step 4" in console.file.getvalue(), 30)  # type: ignore[attr-defined]
        with (pipeline_run.folder / "training" / "abc" / "metrics-001.jsonl").open("a") as file:
            file.write(json.dumps({"step": 5, "data": {"critic/score/mean": 0.5}}) + "\n")
        wait_until(lambda: "step 5" in console.file.getvalue(), 30)  # type: ignore[attr-defined]
        lease.give_back(home.lease)

    lease.take(home.lease, "chain-0001")
    training = threading.Thread(target=ends)
    training.start()
    assert watch("chain-0001", home, console) == 0
    training.join()
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert text.index("step 4") < text.index("step 5") < text.index("chain-0001: interrupted")


def test_a_run_is_watched_before_it_trains(home: Home, pipeline_run: PipelineRun) -> None:
    shutil.rmtree(pipeline_run.folder / "training")
    console = Console(file=StringIO(), width=140, force_terminal=True, highlight=False)

    def ends() -> None:
        wait_until(lambda: "verified_problems said" in console.file.getvalue(), 30)  # type: ignore[attr-defined]
        lease.give_back(home.lease)

    lease.take(home.lease, "chain-0001")
    data = threading.Thread(target=ends)
    data.start()
    assert watch(None, home, console) == 0
    data.join()
    assert "chain-0001: interrupted" in console.file.getvalue()  # type: ignore[attr-defined]


def test_why_a_training_was_ended_early_is_told_by_status_and_by_its_own_page(home: Home) -> None:
    assert "ended early" not in said(show_job, None)
    reason = "KL: actor/kl_loss is 0.9 over 3 steps, above 0.5"
    (home.runs / "chain-0001" / "training" / "abc" / "stopped.json").write_text(
        json.dumps({"step": 4, "reason": reason})
    )
    console = Console(file=StringIO(), width=200)
    show_status(Settings.read(), console)
    assert reason in said(show_job, None)
    assert f"its training was ended early: {reason}" in console.file.getvalue()  # type: ignore[attr-defined]


def test_before_the_first_step_nothing_is_said_of_steps(home: Home) -> None:
    assert "a step" in said(show_job, None)
    next((home.runs / "chain-0001" / "training" / "abc").glob("metrics-*.jsonl")).unlink()
    assert "a step" not in said(show_job, None) and "0 of 20" in said(show_job, None)


def test_what_was_got_over_is_told_with_its_run(home: Home) -> None:
    assert "damaged" not in said(show_job, None)
    faults.record(home.runs / "chain-0001" / "training" / "abc", "the save of step 4 is damaged")
    assert "the save of step 4 is damaged" in said(show_job, None)


def test_a_training_that_goes_on_without_its_command_is_not_in_the_way_of_the_next(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RATCHET_SET", "needs.memory_gib=1000000")
    monkeypatch.setenv("DAGSTER_HOME", str(home.path / "dagster"))
    with pytest.raises(NotReady, match="GiB of memory"):
        prepare_run(Settings.read("small"))
    owner.register_holder(home.path / "ray" / HOLDERS)
    assert prepare_run(Settings.read("small")).needs.memory_gib == 1000000


def test_logs_are_printed_as_they_are(home: Home) -> None:
    assert said(show_logs, "chain-0001", 2).splitlines()[:2] == ["two [red]", "three"]


def test_a_run_with_a_curriculum_says_what_was_drawn_last(home: Home) -> None:
    folder = next((home.runs / "chain-0001" / "training").iterdir())
    job = TrainingJob.read(folder / "job.json")
    job.model_copy(update={"training": Training(curriculum=Curriculum(schedule="mixed"))}).write()
    figures = {
        "curriculum/pass_rate": 0.45,
        "curriculum/expected_pass_rate": 0.5,
        "curriculum/informative": 0.75,
    }
    with (folder / "metrics-001.jsonl").open("a") as file:
        file.write(json.dumps({"step": 5, "data": figures}) + "\n")
    assert "mixed: 45% passed, 50% expected, of 75% some" in said(show_job, None)


def test_of_a_uniform_run_the_samples_tell_what_was_drawn(home: Home) -> None:
    text = said(show_draws, None, None)
    assert "curriculum uniform" in text and text.splitlines()[-1].split() == [
        "4",
        "2",
        "2",
        "50%",
        "0%",
    ]


def test_what_a_curriculum_expected_stands_beside_what_was_seen(home: Home) -> None:
    folder = next((home.runs / "chain-0001" / "training").iterdir())
    draws.write(
        folder, 4, [draws.Draw("embedded/a", 4, 8, 0.5), draws.Draw("embedded/b", 8, 8, 0.25)]
    )
    assert said(show_draws, None, None).splitlines()[-1].split() == [
        "4",
        "2",
        "2",
        "38%",
        "75%",
        "50%",
    ]
    assert [line.split() for line in said(show_draws, None, 4).splitlines()[2:]] == [
        ["embedded/b", "25%", "8", "of", "8"],
        ["embedded/a", "50%", "4", "of", "8"],
    ]


def test_the_worst_answers_come_first_with_verdict_and_trace(home: Home) -> None:
    text = said(show_samples, None, 4, True, False, 1)
    assert (
        "3 answers, 2 AC, 1 WA" in text
        and "embedded/a" in text
        and "embedded/b" not in text
        and "correctness -1.00, format +0.10" in text
    )


def test_a_step_without_samples_names_those_there_are(home: Home) -> None:
    with pytest.raises(FileNotFoundError, match="no samples of step 9: there are 4 to 4"):
        said(show_samples, None, 9, False, False, 1)


def test_an_unknown_run_names_those_there_are(home: Home) -> None:
    with pytest.raises(FileNotFoundError, match=r"no training chain-0007 .* there are chain-0001"):
        said(show_job, "chain-0007")


def test_stopping_what_does_not_train_says_so(home: Home) -> None:
    assert "chain-0001 does not train." in said(stop, "chain-0001")


def test_a_run_of_a_script_s_background_job_hears_that_it_is_to_end() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", IN_BACKGROUND], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout and process.stdout.readline() == "runs\n"
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=60)[0] == "ended\n"


def test_of_a_study_that_was_stopped_the_command_is_named_that_goes_on_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path / "home")
    home.make()
    monkeypatch.setenv("RATCHET_HOME", str(home.path))
    changes = ("training.steps=4",)
    open_run(
        home.runs,
        "study-a",
        kind="study",
        base_seed=1,
        profile="small",
        why="ratchet train --seeds 3",
        champion=None,
        changes=changes,
    )
    with subprocess.Popen([sys.executable, "-c", HELD, str(home.lease)]) as training:
        while lease.holder(home.lease) is None:
            time.sleep(0.05)
        told = said(stop, None)
        assert training.wait() != 0
    command = "`ratchet train --seeds 3 --profile small --set training.steps=4` goes on"
    assert f"study-a is stopped. What was saved is kept: {command} from there." in told
    assert f"study-a has not ended: {command} with it." in said(
        lambda home, console: resume(Settings.read(), console)
    )


def test_of_a_reviewer_s_training_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(tmp_path / "home")
    home.make()
    monkeypatch.setenv("RATCHET_HOME", str(home.path))
    with subprocess.Popen(
        [sys.executable, "-c", HELD.replace("study-a", "reviewer-better"), str(home.lease)]
    ):
        while lease.holder(home.lease) is None:
            time.sleep(0.05)
        assert "`ratchet reviewer reinforce` goes on" in said(stop, None)


def test_an_open_run_goes_on_with_the_profile_and_the_changes_that_it_was_begun_with(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RATCHET_SET", raising=False)
    assert resume_settings(Settings.read()).title == "small training.algorithm=rloo"
    assert resume_settings(Settings.read("gpu")).profile_name == "gpu"


def test_a_profile_of_one_s_own_is_found_again_from_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.yaml").write_text("seed: 7\n")
    monkeypatch.chdir(tmp_path)
    assert Settings.read("mine.yaml").reference == str(tmp_path / "mine.yaml")
    assert Settings.read("small").reference == "small"


def test_a_run_s_manifest_runs_its_own_job_file(home: Home) -> None:
    manifest = yaml.safe_load(
        said(lambda home, console: print_manifest(None, False, Settings.read("cluster"), console))
    )
    assert manifest["kind"] == "RayJob" and manifest["spec"]["entrypoint"].endswith(
        f"{home.runs}/chain-0001/training/abc/job.json"
    )
    assert (
        yaml.safe_load(
            said(
                lambda home, console: print_manifest(None, True, Settings.read("cluster"), console)
            )
        )["kind"]
        == "RayCluster"
    )


def test_a_cluster_that_is_not_there_is_one_clear_error() -> None:
    (port,) = free_ports(1)
    with pytest.raises(
        NotReady, match=f"no Ray answers at http://127.0.0.1:{port}: give the dashboard's address"
    ):
        list_submissions(f"http://127.0.0.1:{port}", Console())
