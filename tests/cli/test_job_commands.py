"""The command line shows training runs: a home with a run that was killed before its decision."""

from __future__ import annotations

import json
import re
import shutil
import threading
from functools import partial
from io import StringIO
from pathlib import Path

import pytest
import yaml
from rich.console import Console

from cli.draws import show_draws
from cli.jobs.control import stop, watch
from cli.jobs.show import list_jobs, print_manifest, show_job, show_logs
from cli.samples import show_samples
from cli.status import show_status
from pipelines.launch import prepare_run, resume_settings
from resources import lease
from resources.home import Home, NotReady
from resources.progress import Progress
from resources.ray.head import HOLDERS
from resources.run_record import PipelineRun
from resources.settings import Settings
from rewards.config import RewardConfig
from tests.cli.conftest import Called
from tests.journeys.demo_run import wait_until
from tests.open_runs import open_test_run
from verl_jobs import faults, samples
from verl_jobs.config.curriculum import Curriculum
from verl_jobs.config.training import Training
from verl_jobs.curriculum import draws
from verl_jobs.job import VALIDATION, TrainingJob
from verl_jobs.trainer import trainer_lease


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("RATCHET_HOME", str(tmp_path))
    home = Home(tmp_path)
    pipeline_run = open_test_run(home.runs, "chain-0001", changes=["training.algorithm=rloo"])
    folder = pipeline_run.folder / "training" / "abc"
    folder.mkdir(parents=True)
    job = TrainingJob(
        folder=str(folder),
        run_id="chain-0001",
        start="start",
        train="t",
        validation="v",
        inputs={"start": "0" * 64},
        training=Training(algorithm="rloo"),
        reward=RewardConfig(),
        reward_hash="f" * 64,
        isolation="auto",
        seed=1001,
    )
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
    return home


def output_of(command: object, *arguments: object, settings: Settings | None = None) -> str:
    """Call a command's function with its arguments, the home or the settings, and a console."""
    console = Console(file=StringIO(), width=140)
    context = settings or Settings.read().home
    assert command(*arguments, context, console) == 0  # type: ignore[operator]
    out = console.file.getvalue()  # type: ignore[attr-defined]
    assert isinstance(out, str)
    return out


def test_the_list_shows_the_progress_of_each_run(home: Home) -> None:
    line = next(
        line for line in output_of(partial(list_jobs, last=9)).splitlines() if "chain-0001" in line
    )
    assert all(
        part in line
        for part in ("interrupted", "4 of 20", "0.400", "25.0%", "small training.algorithm=rloo")
    )


def test_the_list_marks_a_training_run(home: Home) -> None:
    lease.take(home.lease, "chain-0001")
    try:
        assert "training" in output_of(partial(list_jobs, last=9)).split()
    finally:
        lease.release(home.lease)


def test_one_run_is_shown_with_its_algorithm_and_curve(home: Home) -> None:
    text = output_of(show_job, None)
    assert "RLOO (Ahmadian et al. 2024, arXiv:2402.14740)" in text
    assert "0: 25.0%" in text
    assert "reward" in text


@pytest.fixture
def pipeline_run(home: Home) -> PipelineRun:
    """The same run with two finished stages and one in progress."""
    pipeline_run = PipelineRun(home.runs, "chain-0001")
    for name in ("raw_problems", "verified_problems"):
        with pipeline_run.stage(name) as stage:
            stage.created += 1
            stage.say(f"{name} said")
    Progress(pipeline_run.progress_file, "checkpoint").write("begin")
    return pipeline_run


def test_watching_a_finished_run_shows_all_of_it(pipeline_run: PipelineRun) -> None:
    pipeline_run.change(state="done", decision="promote", minutes=7.5, peak_pss_gib=6.3)
    text = output_of(watch, "chain-0001")
    assert "7:30 min" in text
    assert "peak 6.3 GiB" in text
    assert "✓" in text
    assert "verified_problems said" in text
    assert re.search(r"0\.100 → 0\.250 +step 4", text)
    assert "0: 25.0 %" in text
    assert "profile small training.algorithm=rloo" in text
    assert text.splitlines()[-1] == "chain-0001: promoted"


@pytest.mark.slow
def test_watching_ends_when_the_run_releases_its_lease(
    home: Home, pipeline_run: PipelineRun
) -> None:
    console = Console(file=StringIO(), width=140, force_terminal=True, highlight=False)

    def ends() -> None:
        wait_until(lambda: "step 4" in console.file.getvalue(), 30)  # type: ignore[attr-defined]
        with (pipeline_run.folder / "training" / "abc" / "metrics-001.jsonl").open("a") as file:
            file.write(json.dumps({"step": 5, "data": {"critic/score/mean": 0.5}}) + "\n")
        wait_until(lambda: "step 5" in console.file.getvalue(), 30)  # type: ignore[attr-defined]
        lease.release(home.lease)

    lease.take(home.lease, "chain-0001")
    training = threading.Thread(target=ends)
    training.start()
    assert watch("chain-0001", home, console) == 0
    training.join()
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert text.index("step 4") < text.index("step 5") < text.index("chain-0001: interrupted")


def test_a_run_can_be_watched_before_its_training_starts(
    home: Home, pipeline_run: PipelineRun
) -> None:
    shutil.rmtree(pipeline_run.folder / "training")
    console = Console(file=StringIO(), width=140, force_terminal=True, highlight=False)

    def ends() -> None:
        seen = "verified_problems said"
        wait_until(lambda: seen in console.file.getvalue(), 30)  # type: ignore[attr-defined]
        lease.release(home.lease)

    lease.take(home.lease, "chain-0001")
    data = threading.Thread(target=ends)
    data.start()
    assert watch(None, home, console) == 0
    data.join()
    assert "chain-0001: interrupted" in console.file.getvalue()  # type: ignore[attr-defined]


def test_the_reason_of_an_early_end_is_shown(home: Home) -> None:
    reason = "KL: actor/kl_loss is 0.9 over 3 steps, above 0.5"
    assert reason not in output_of(show_job, None)
    (home.runs / "chain-0001" / "training" / "abc" / "stopped.json").write_text(
        json.dumps({"step": 4, "reason": reason})
    )
    console = Console(file=StringIO(), width=200)
    show_status(Settings.read(), console)
    assert reason in output_of(show_job, None)
    assert reason in console.file.getvalue()  # type: ignore[attr-defined]


def test_a_run_without_steps_shows_no_seconds_per_step(home: Home) -> None:
    assert "a step" in output_of(show_job, None)
    next((home.runs / "chain-0001" / "training" / "abc").glob("metrics-*.jsonl")).unlink()
    assert "a step" not in output_of(show_job, None)
    assert "0 of 20" in output_of(show_job, None)


def test_faults_are_shown_with_their_run(home: Home) -> None:
    assert "damaged" not in output_of(show_job, None)
    faults.record(home.runs / "chain-0001" / "training" / "abc", "the save of step 4 is damaged")
    assert "the save of step 4 is damaged" in output_of(show_job, None)


def test_a_run_that_still_trains_skips_the_memory_check(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RATCHET_SET", "needs.memory_gib=1000000")
    monkeypatch.setenv("DAGSTER_HOME", str(home.path / "dagster"))
    with pytest.raises(NotReady, match="memory"):
        prepare_run(Settings.read("small"))
    assert not home.profile  # a refused start is not remembered
    trainer_lease.register_holder(home.path / "ray" / HOLDERS)
    assert prepare_run(Settings.read("small")).needs.memory_gib == 1000000


def test_logs_are_printed_unchanged(home: Home) -> None:
    assert output_of(show_logs, "chain-0001", 2).splitlines()[:2] == ["two [red]", "three"]


def test_a_curriculum_shows_its_last_pass_rates(home: Home) -> None:
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
    assert re.search("mixed.*45%.*50%.*75%", output_of(show_job, None))


def test_draws_of_a_uniform_run_come_from_its_samples(home: Home) -> None:
    text = output_of(show_draws, None, None)
    assert "curriculum uniform" in text
    assert text.splitlines()[-1].split() == [
        "4",
        "2",
        "2",
        "50%",
        "0%",
    ]


def test_draws_show_expected_and_measured_pass_rates(home: Home) -> None:
    folder = next((home.runs / "chain-0001" / "training").iterdir())
    draws.write(
        folder, 4, [draws.Draw("embedded/a", 4, 8, 0.5), draws.Draw("embedded/b", 8, 8, 0.25)]
    )
    assert output_of(show_draws, None, None).splitlines()[-1].split() == [
        "4",
        "2",
        "2",
        "38%",
        "75%",
        "50%",
    ]
    assert [line.split() for line in output_of(show_draws, None, 4).splitlines()[2:]] == [
        ["embedded/b", "25%", "8", "of", "8"],
        ["embedded/a", "50%", "4", "of", "8"],
    ]


def shown_samples(step: int, *, worst: bool) -> str:
    def shown(home: Home, console: Console) -> int:
        return show_samples(
            None, step, worst=worst, best=False, count=1, home=home, console=console
        )

    return output_of(shown)


def test_the_worst_completions_come_first_with_verdict_and_components(home: Home) -> None:
    text = shown_samples(4, worst=True)
    assert "2 AC, 1 WA" in text
    assert "embedded/a" in text
    assert "embedded/b" not in text
    assert "correctness -1.00, format +0.10" in text


def test_a_step_without_samples_names_the_available_steps(home: Home) -> None:
    with pytest.raises(FileNotFoundError, match=r"step 9\b.*\b4\b"):
        shown_samples(9, worst=False)


def test_an_unknown_run_names_the_existing_runs(home: Home) -> None:
    with pytest.raises(FileNotFoundError, match=r"chain-0007.*chain-0001"):
        output_of(show_job, "chain-0007")


def test_stopping_an_idle_run_reports_it(home: Home) -> None:
    assert "chain-0001" in output_of(stop, "chain-0001")


def test_an_open_run_resumes_with_its_own_settings(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RATCHET_SET", raising=False)
    assert resume_settings(Settings.read()).title == "small training.algorithm=rloo"
    assert resume_settings(Settings.read("gpu")).profile_name == "gpu"


def test_a_run_of_another_host_resumes_with_the_profile_of_this_home(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RATCHET_SET", raising=False)
    (home.path / "profile").write_text("small\n", encoding="utf-8")
    PipelineRun(home.runs, "chain-0001").change(profile="/of another host/team.yaml")
    assert resume_settings(Settings.read()).profile_name == "small"


def test_a_manifest_runs_the_job_file_of_its_run(home: Home) -> None:
    settings = Settings.read("cluster", ["storage.ledger=''"])  # the job is of this home
    manifest, cluster, values = (
        yaml.safe_load(
            output_of(partial(print_manifest, **kind), None, settings=settings)  # type: ignore[arg-type]
        )
        for kind in (
            {"cluster": False, "values": False},
            {"cluster": True, "values": False},
            {"cluster": False, "values": True},
        )
    )
    assert manifest["kind"] == "RayJob"
    assert manifest["spec"]["entrypoint"].endswith("/runs/chain-0001/training/abc/job.json")
    assert cluster["kind"] == "RayCluster"
    assert values["generated"]["ray"] == cluster


def test_the_newest_trainings_are_listed(home: Home, ratchet: Called) -> None:
    for number in range(1, 5):
        open_test_run(home.runs, f"later-{number:04d}")
    _, output, _ = ratchet(home.path, "jobs", "list", "--last", "2", "--json")
    assert [job["run"] for job in json.loads(output)] == ["later-0003", "later-0004"]
