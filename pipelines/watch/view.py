"""The live view of a pipeline run: stages, progress bars and a reward curve; plain lines if the
output is not a terminal.

In: the run's progress lines and training metrics, as files. Out: rich renderables, or text.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from artifacts.charts import smoothed
from assets.stages import PREPARING, RUN, STAGES
from pipelines.watch.curve import curve
from resources.config.profile import Profile
from resources.progress import Line, read
from verl_jobs.job import VALIDATION, TrainingJob, metrics
from verl_jobs.metrics.figures import last_figures, seconds_left

REWARD = "critic/score/mean"
SILENT_S = 60.0  # after which plain text shows progress again, however small

FIGURES = {
    "KL": "KL {:.2g}",
    "entropy": "entropy {:.2f}",
    "length": "{:.0f} tokens a completion",
    "cut": "{:.0%} truncated",
    "tokens_per_second": "{:,.0f} tokens/s",
    "seconds_a_step": "{:.1f} s a step",
}
MARKS = {
    "waiting": ("·", "dim"),
    "end": ("✓", "green"),
    "found": ("✓", "cyan"),
    "failed": ("✗", "bold red"),
}


@dataclass
class StageRow:
    title: str
    state: str = "waiting"
    start_s: float = 0.0
    end_s: float = 0.0
    done: int = 0
    total: int = 0
    text: str = ""
    first: tuple[float, int] | None = None  # time and count of its first progress line
    left_s: float | None = None
    shown_s: float = 0.0  # time of its last plain progress line

    @property
    def progress(self) -> str:
        """The count, and the time left at the speed so far."""
        left = f", about {_duration(self.left_s)} left" if self.left_s else ""
        return f"{self.done:,} of {self.total:,}{left} {self.text}".rstrip()

    def count(self, line: Line) -> None:
        """Take a progress line."""
        self.done, self.total = line.done, line.total
        self.first = self.first or (line.t, line.done)
        (began, before), left = self.first, line.total - line.done
        self.left_s = (line.t - began) * left / (line.done - before) if line.done > before else None


def stages_of(profile: Profile, stages: Iterable[str] = RUN) -> list[str]:
    """Return those of the stages that run: no source is read if the profile names a dataset."""
    return [name for name in stages if not (profile.dataset and name in PREPARING[:-1])]


class MetricCurves:
    """Metrics of the newest training in a folder, over all of its attempts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rewards: dict[int, float] = {}
        self.validation: dict[int, float] = {}
        self.figures: dict[str, float] = {}
        self.left: float | None = None
        self._size = 0

    def follow(self) -> None:
        files = sorted(self.folder.glob("*/metrics-*.jsonl"), key=lambda path: path.stat().st_mtime)
        size = sum(path.stat().st_size for path in files)
        if not files or size == self._size:
            return
        self._size = size
        history = metrics(files[-1].parent)
        self.rewards = {record["step"]: record[REWARD] for record in history if REWARD in record}
        self.validation = {
            record["step"]: record[VALIDATION] for record in history if VALIDATION in record
        }
        job_file = files[-1].parent / "job.json"
        self.figures = last_figures(history)
        self.left = (
            seconds_left(history, TrainingJob.read(job_file).training.steps)
            if job_file.exists()
            else None
        )


class View:
    """The view of one run, which rich renders. `follow` updates it and returns the new lines."""

    def __init__(
        self, folder: Path, title: str, stages: Iterable[str] = RUN, *, from_start: bool = False
    ) -> None:
        """from_start: also show the events from before this view was opened."""
        self.folder, self.title = folder, title
        self.rows = {
            name: StageRow(STAGES[name].title if name in STAGES else name) for name in stages
        }
        self.curve = MetricCurves(folder / "training")
        self.began = time.time()
        self.memory_gib = self.peak_gib = 0.0
        self.notes: list[str] = []
        progress_file = folder / "progress.jsonl"
        self._offset = (
            progress_file.stat().st_size if progress_file.exists() and not from_start else 0
        )
        self._spinner = Spinner("dots")

    def follow(self) -> list[str]:
        """Read the events since the last call; return them as plain lines."""
        lines, self._offset = read(self.folder / "progress.jsonl", self._offset)
        before = len(self.curve.rewards)
        self.curve.follow()
        news = [text for line in lines if (text := self._apply(line))]
        if len(self.curve.rewards) > before:
            step, reward = max(self.curve.rewards.items())
            news.append(f"  training step {step}: mean reward {reward:.3f}")
        return news

    def note(self, text: str) -> None:
        """Add a warning below the stages."""
        self.notes.append(text)

    def _apply(self, line: Line) -> str:
        row = self.rows.get(line.stage)
        if row is None:
            return ""
        tenth = 10 * row.done // row.total if row.total else -1
        row.text = line.text or row.text
        if line.event == "begin":
            self.rows[line.stage] = StageRow(row.title, "begin", line.t)
            return f"{row.title} ..."
        if line.event == "at":
            row.count(line)
            grown = row.total and 10 * row.done // row.total > tenth
            if row.done >= row.total or not (grown or line.t >= row.shown_s + SILENT_S):
                return ""
            row.shown_s = line.t
            return f"  {row.title}: {row.progress}"
        row.state, row.end_s = line.event, line.t
        outcome = {
            "end": f"done in {_duration(row.end_s - row.start_s)}",
            "found": "exists already",
            "failed": "FAILED",
        }[line.event]
        if line.text == "DagsterExecutionInterruptedError":
            return f"{row.title}: stopped"
        return f"{row.title}: {outcome}{f' ({line.text})' if line.text else ''}"

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = Table.grid(padding=(0, 1))
        table.add_column(width=1)
        table.add_column(no_wrap=True, min_width=max(len(row.title) for row in self.rows.values()))
        table.add_column(justify="right", style="dim", no_wrap=True)
        table.add_column(no_wrap=True, overflow="ellipsis")
        for row in self.rows.values():
            table.add_row(*self._cells(row))
        foot = (
            f"{_duration(time.time() - self.began)} · {self.memory_gib:.1f} GiB, "
            f"peak {self.peak_gib:.1f} GiB"
        )
        notes = [Text(f"! {note}", style="yellow") for note in self.notes[-3:]]
        parts: list[RenderableType] = [
            table,
            *([self._picture(options.max_width - 6)] if len(self.curve.rewards) > 1 else []),
            *notes,
        ]
        yield Panel(
            Group(*parts),
            title=f"[bold]ratchet[/] · {self.title}",
            subtitle=foot,
            border_style="blue",
            padding=(1, 2),
        )

    def _cells(self, row: StageRow) -> tuple[RenderableType, ...]:
        if row.state != "begin":
            mark, style = MARKS[row.state]
            duration = (
                _duration(row.end_s - row.start_s)
                if row.state == "end"
                else "exists"
                if row.state == "found"
                else ""
            )
            return (
                Text(mark, style=style),
                Text(row.title, style="dim" if row.state == "waiting" else ""),
                duration,
                Text(row.text, style="dim"),
            )
        self._spinner.style = "blue"
        bar: RenderableType = (
            ProgressBar(total=row.total, completed=row.done, width=28)
            if row.total
            else Text(row.text, style="dim")
        )
        progress = Table.grid(padding=(0, 1))
        progress.add_row(bar, Text(row.progress, style="dim")) if row.total else progress.add_row(
            bar
        )
        return (
            self._spinner,
            Text(row.title, style="bold"),
            _duration(time.time() - row.start_s),
            progress,
        )

    def _picture(self, width: int) -> Group:
        steps, rewards = zip(*sorted(self.curve.rewards.items()), strict=True)
        smooth = smoothed(rewards, 5)
        lines = [Text(line, style="green") for line in curve(smooth, min(width, 72), 5)]
        head = Text.assemble(
            "\nreward, mean of 5 steps  ",
            (f"{smooth[0]:.3f} → {smooth[-1]:.3f}", "bold"),
            f"  step {steps[-1]}",
        )
        tail = [
            Text(
                "validation pass@1  "
                + "  ".join(
                    f"{step}: {100 * v:.1f} %" for step, v in sorted(self.curve.validation.items())
                )
            )
        ]
        now = Text(figures_line(self.curve.figures, self.curve.left), style="dim")
        return Group(head, *lines, *(tail if self.curve.validation else []), now)


def figures_line(figures: Mapping[str, float], left: float | None) -> str:
    """Return the figures of the last step as one line."""
    texts = [form.format(figures[name]) for name, form in FIGURES.items() if name in figures]
    return " · ".join([*texts, *([f"about {_duration(left)} left"] if left else [])])


def _duration(seconds: float) -> str:
    return (
        f"{seconds:.1f} s" if seconds < 60 else f"{int(seconds // 60)}:{int(seconds % 60):02d} min"
    )
