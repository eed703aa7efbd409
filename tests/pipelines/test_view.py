"""The live view of a run is built from its files alone, with and without a terminal."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from artifacts.json_lines import line_of
from assets.stages import STAGES
from pipelines import launch
from pipelines.watch.curve import BLANK, curve
from pipelines.watch.view import StageRow, View
from resources.home import Home
from resources.progress import Line
from tests.open_runs import open_test_run


def test_the_view_shows_stages_and_the_reward_curve(tmp_path: Path) -> None:
    runs = Home(tmp_path).runs
    view = View(runs / "chain-0001", "chain-0001 · profile small")
    pipeline_run = open_test_run(runs, "chain-0001")
    with pipeline_run.stage("raw_problems") as stage:
        stage.created += 1
        stage.say("480 problems")
    training = pipeline_run.folder / "training" / "abc"
    training.mkdir(parents=True)
    lines = [{"step": step, "data": {"critic/score/mean": step / 10}} for step in range(1, 9)]
    (training / "metrics-1.jsonl").write_text(
        "".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8"
    )
    news = view.follow()
    console = Console(width=100, record=True, force_terminal=True)
    console.print(view)
    picture = console.export_text()
    assert any("480 problems" in line for line in news)
    assert any(re.search(r"\b8\b.*0\.800", line) for line in news)
    assert "✓" in picture
    assert "0.100 → 0.600" in picture
    assert any(0x2801 <= ord(c) <= 0x28FF for c in picture)


def test_a_long_message_does_not_shorten_stage_names(tmp_path: Path) -> None:
    pipeline_run = open_test_run(Home(tmp_path).runs, "chain-0001")
    with pipeline_run.stage("verified_problems") as stage:
        stage.say("a" * 200)
    view = View(pipeline_run.folder, "again", from_start=True)
    view.follow()
    console = Console(width=100, record=True)
    console.print(view)
    assert STAGES["verified_problems"].title in console.export_text()


def test_a_later_view_does_not_repeat_old_news(tmp_path: Path) -> None:
    pipeline_run = open_test_run(Home(tmp_path).runs, "chain-0001")
    with pipeline_run.stage("raw_problems"):
        pass
    assert View(pipeline_run.folder, "again").follow() == []


@given(st.lists(st.floats(-1, 1), max_size=300), st.integers(1, 80), st.integers(1, 8))
def test_a_curve_fits_its_frame_for_any_values(
    values: list[float], width: int, height: int
) -> None:
    lines = curve(values, width, height)
    assert len(lines) == height
    assert all(len(line) == width for line in lines if values)
    assert all(BLANK <= ord(character) <= BLANK + 0xFF for line in lines for character in line)


def test_a_rising_curve_ends_at_the_top(tmp_path: Path) -> None:
    lines = curve([0.0, 1.0, 2.0, 3.0], width=10, height=2)
    assert lines[0][-1] != chr(BLANK)
    assert lines[1][0] != chr(BLANK)
    assert lines[0][0] == chr(BLANK)


def test_a_stage_shows_the_time_left_at_the_speed_so_far() -> None:
    row = StageRow("verified")
    for t, done in ((60.0, 100), (180.0, 412)):
        row.count(Line(t=t, stage="verified", event="at", done=done, total=1224, text=""))
    assert row.progress == "412 of 1,224, about 5:12 min left"


def test_plain_text_shows_slow_progress_every_minute(tmp_path: Path) -> None:
    view = View(tmp_path, "a slow machine")
    with (tmp_path / "progress.jsonl").open("wb") as file:
        for t, done in [(1000, 90), (1030, 91), (1061, 92), (1100, 93), (1130, 100)]:
            line = Line(t=t, stage="verified_problems", event="at", done=done, total=100)
            file.write(line_of(line.model_dump()))
    shown = [re.findall(r"(\d+) of 100", text) for text in view.follow()]
    assert shown == [["90"], ["92"]]


def test_minutes_are_counted_where_reading_the_memory_takes_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(processes: object) -> int:
        time.sleep(0.1)
        return 1

    monkeypatch.setattr(launch, "pss_bytes", slow)
    monkeypatch.setattr(launch, "SAMPLE_S", 0.0)
    pipeline_run = open_test_run(Home(tmp_path).runs, "chain-0001")
    sampler, view = launch.ResourceSampler(pipeline_run), View(tmp_path, "a busy machine")
    counted = []
    for _ in range(2):
        sampler.sample(view)
        time.sleep(0.1)
        counted.append(pipeline_run.record.minutes)
    assert counted[1] > counted[0]
