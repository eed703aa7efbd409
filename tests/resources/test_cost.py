"""What runs cost: real records and progress, a fake clock and a price table."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from artifacts.json_lines import line_of
from artifacts.manifest import Manifest, hardware
from resources.cost import (
    BudgetSpent,
    Total,
    check_budget,
    cost_line,
    costs,
    end_if_spent,
    month_of,
    run_cost,
    spent_in,
)
from resources.home import Home, NotReady
from resources.progress import ON_RAY, Line
from resources.registry.ledger import Kind
from resources.run_record import Timing, readable
from resources.settings import Settings
from rewards.config import RewardConfig
from tests.open_runs import open_test_run
from verl_jobs.config.training import Training
from verl_jobs.job import TrainingJob

BEGAN = datetime(2026, 10, 31, 23, 0, tzinfo=UTC)
NOVEMBER = month_of(BEGAN + timedelta(hours=2))
PRICES = ("price_per_hour=1", "cost.gpu_hour=10", "cost.cpu_hour=0.1", "cost.gib_hour=0.01")


class Runs:
    """Records of this machine, with a training on two GPUs."""

    def __init__(self, home: Home) -> None:
        self.home = home

    def add(self, name: str, *lines: tuple[str, str, float], gpus: int = 2) -> None:
        """lines: stage, event, hours since BEGAN."""
        run = open_test_run(self.home.runs, name)
        run.change(opened_at=BEGAN.isoformat())
        for stage, event, hours in lines:
            at = (BEGAN + timedelta(hours=hours)).timestamp()
            line = Line.model_validate({"t": at, "stage": stage, "event": event})
            with run.progress_file.open("ab") as file:
                file.write(line_of(line.model_dump()))
        training = Training(engine="vllm", ranks=gpus) if gpus else Training()
        job = TrainingJob(
            folder=str(run.folder / "training" / "1"), run_id=name, start="start", train="t",
            validation="v", inputs={}, training=training, reward=RewardConfig(), reward_hash="c",
            isolation="auto", seed=1,
        )  # fmt: skip
        job.path.mkdir(parents=True)
        job.write()
        store = self.home.store()
        with store.draft("checkpoints", name) as folder:
            (folder / "weights").write_text(name, encoding="utf-8")
            manifest = Manifest(kind="checkpoints", name=name, key=name, content_hash="")
            store.publish(folder, manifest)

    def settings(self, *changes: str) -> Settings:
        return Settings(self.home, "small", (*PRICES, *changes))


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    home = Home(tmp_path)
    home.make()
    return Runs(home)


def test_hours_are_those_in_which_a_stage_worked(runs: Runs) -> None:
    runs.add(
        "chain-0001", ("clean_problems", "begin", 0.0), ("clean_problems", "end", 0.5),
        ("checkpoint", "begin", 2.0), ("checkpoint", "end", 3.0),
    )  # fmt: skip
    [cost] = costs(runs.settings(), BEGAN + timedelta(hours=9))
    assert cost.usage.hours == pytest.approx(1.5)
    assert cost.usage.gpu == pytest.approx(2.0)
    cores, gib = hardware()["cores"], hardware()["memory_gib"]
    assert cost.usage.cpu == pytest.approx(1.5 * cores)
    assert cost.usage.memory == pytest.approx(1.5 * gib)
    assert cost.price == pytest.approx(1.5 + 20.0 + 0.15 * cores + 0.015 * gib)


def test_the_gpus_of_an_engine_count_while_it_generates_completions(runs: Runs) -> None:
    runs.add("chain-0001")
    file = runs.home.runs / "chain-0001" / "progress.jsonl"
    for hours, text in ((0, "waiting for Ray"), (2, ON_RAY), (5, "judged"), (9, "")):
        at = (BEGAN + timedelta(hours=hours)).timestamp()
        line = Line(t=at, stage="contestant_scores", event="at", text=text)
        with file.open("ab") as lines:
            lines.write(line_of(line.model_dump()))
    [cost] = costs(runs.settings(), BEGAN + timedelta(hours=10))
    assert cost.usage.gpu == pytest.approx(3.0)


def test_an_attempt_that_was_killed_counts_to_its_last_sign(runs: Runs) -> None:
    runs.add(
        "chain-0001", ("checkpoint", "begin", 0.0), ("checkpoint", "at", 1.0),
        ("checkpoint", "begin", 5.0), ("checkpoint", "end", 6.0),
    )  # fmt: skip
    [cost] = costs(runs.settings(), BEGAN + timedelta(hours=9))
    assert cost.usage.gpu == pytest.approx(4.0)


def test_a_night_over_the_end_of_a_month_is_divided(runs: Runs) -> None:
    runs.add("chain-0001", ("checkpoint", "begin", 0.0), ("checkpoint", "end", 3.0), gpus=0)
    now = BEGAN + timedelta(hours=9)
    october, november = (
        costs(runs.settings(), now, month)[0].usage.hours for month in (month_of(BEGAN), NOVEMBER)
    )
    assert october == pytest.approx(1.0)
    assert november == pytest.approx(2.0)


def test_a_run_of_another_host_spends_the_same_budget(runs: Runs) -> None:
    """Its files are not here: the record has its stages."""
    run = open_test_run(runs.home.runs, "chain-0001")
    run.folder.rmdir()
    ended = (BEGAN + timedelta(hours=3)).isoformat()
    run.change(stages={"checkpoint": Timing(seconds=7200, reused=False, finished_at=ended)})
    settings = runs.settings("training.engine=vllm", "training.ranks=2", "cost.budget=40")
    now = BEGAN + timedelta(hours=9)
    [cost] = costs(settings, now, NOVEMBER)
    assert (cost.usage.hours, cost.usage.gpu) == pytest.approx((2.0, 4.0))
    with pytest.raises(NotReady, match="budget"):
        check_budget(settings, now)


def test_checkpoints_of_an_object_store_are_not_copied_for_their_cost(runs: Runs) -> None:
    runs.add("chain-0001", ("checkpoint", "begin", 2.0), ("checkpoint", "end", 3.0))
    url = f"memory://{runs.home.path.name}"
    store = runs.home.store(url)
    with store.draft("checkpoints", "chain-0001") as folder:
        (folder / "weights").write_bytes(b"1" * 2**20)
        manifest = Manifest(kind="checkpoints", name="chain-0001", key="k", content_hash="")
        store.publish(folder, manifest)
    shutil.rmtree(store.cache)
    settings = runs.settings(f"storage.root={url}", "cost.gib_month=1")
    [cost] = costs(settings, BEGAN + timedelta(hours=1027))
    assert cost.usage.storage >= 1.0
    assert not store.cache.exists()


def test_storage_costs_by_size_and_time(runs: Runs) -> None:
    runs.add("chain-0001", gpus=0)
    (runs.home.runs / "chain-0001" / "saves").write_bytes(b"1" * 2**20)
    later = BEGAN + timedelta(days=30)
    settings = runs.settings("cost.gib_month=1024")
    [cost] = costs(settings, later)
    assert cost.price == pytest.approx(1.0, rel=0.1)  # a MiB for a month; manifests add a little


def test_the_price_is_shared_by_solved_problems_and_promoted_points(runs: Runs) -> None:
    runs.add("chain-0001", ("checkpoint", "begin", 2.0), ("checkpoint", "end", 3.0), gpus=0)
    kinds: tuple[tuple[str, Kind, str | None], ...] = (
        ("first", "install", None),
        ("chain-0001", "promote", "first"),
    )
    for run_id, kind, against in kinds:
        runs.settings().ledger.append(
            kind,
            checkpoint=run_id,
            checkpoint_hash=run_id,
            path=str(runs.home.path),
            decision={"reasons": [], "comparison": {"difference": 0.05, "after": {"solved": 50}}},
            run_id=run_id,
            against=against,
        )  # fmt: skip
    total = Total.of(costs(runs.settings(), BEGAN + timedelta(hours=9), NOVEMBER))
    assert total.per_solved == pytest.approx(total.price / 50)
    assert total.per_point == pytest.approx(total.price / 5)


def test_the_line_of_a_run_has_its_price_and_hours(runs: Runs) -> None:
    runs.add("chain-0001", ("checkpoint", "begin", 2.0), ("checkpoint", "end", 3.0))
    [record] = readable(runs.home.runs)
    free = Settings(runs.home, "small")
    assert cost_line(run_cost(free, record)).startswith("No price: price_per_hour and cost of the")
    line = cost_line(run_cost(runs.settings("cost.cpu_hour=0", "cost.gib_hour=0"), record))
    assert line.startswith("21.00: 1.00 hours of machines, 2.00 of GPUs, ")


def test_a_spent_budget_refuses_trainings_until_the_next_month(runs: Runs) -> None:
    runs.add("chain-0001", ("checkpoint", "begin", 2.0), ("checkpoint", "end", 3.0))
    now, settings = BEGAN + timedelta(hours=9), runs.settings("cost.budget=20")
    with pytest.raises(NotReady, match=r"budget of 2026-11 is spent, 21\.\d+ of 20 \(cost.budget"):
        check_budget(settings, now)
    check_budget(runs.settings("cost.budget=30"), now)
    check_budget(settings, now + timedelta(days=30))


def test_a_running_training_spends_and_is_ended(runs: Runs) -> None:
    runs.add("chain-0001", ("checkpoint", "begin", 2.0), ("checkpoint", "at", 2.5))
    now, settings = BEGAN + timedelta(hours=9), runs.settings("cost.budget=20")
    end_if_spent(settings, now)
    assert spent_in(settings, now) < 20
    runs.add("chain-0002", ("checkpoint", "begin", 2.5), ("checkpoint", "at", 3.1))
    with pytest.raises(BudgetSpent):
        end_if_spent(settings, now)
