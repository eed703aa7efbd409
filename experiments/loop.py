"""The loop of all studies: cells run, and Optuna's journal records how each of them ended.

A cell has a name, or its settings are asked from a sampler. A cell that a kill interrupted is still
running in the journal: the next command runs it again under its number, and the cell's own files
say how far it had come. A finished cell never runs again.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from pathlib import Path

import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, TrialState
from rich.console import Console

POLL_S = 0.5

# A running cell: it yields while it waits, stops its work when it is closed, and returns its value,
# or None if it ended without one. It may raise CellFailed, and TrialPruned.
RunningCell = Generator[None, None, float | None]


class CellFailed(RuntimeError):
    """A cell did not end, for this reason. The next command runs it again."""


class StudyRecord:
    """Optuna's record of one study's cells, in the file `cells.journal` of a folder."""

    def __init__(
        self,
        folder: Path,
        name: str,
        console: Console,
        pruner: optuna.pruners.BasePruner | None = None,
    ) -> None:
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        folder.mkdir(parents=True, exist_ok=True)
        self.console = console
        self.storage = JournalStorage(JournalFileBackend(str(folder / "cells.journal")))
        self.search = optuna.create_study(
            storage=self.storage,
            study_name=name,
            direction="maximize",
            load_if_exists=True,
            pruner=pruner,
        )

    @property
    def cells(self) -> dict[str, FrozenTrial]:
        """Return the cells with a name that have begun."""
        trials = self.search.get_trials(deepcopy=False)
        return {each.user_attrs["cell"]: each for each in trials if "cell" in each.user_attrs}

    @property
    def failed(self) -> dict[str, str]:
        """Map the names of the cells that failed to the reason."""
        return {
            name: each.user_attrs["failed"]
            for name, each in self.cells.items()
            if each.user_attrs.get("failed")
        }

    def named(self, titles: Mapping[str, str]) -> Iterator[optuna.Trial]:
        """Return the cells of these names that have not finished. titles: name to printed title."""
        known = self.cells
        for name, title in titles.items():
            cell = known.get(name)
            if cell and cell.state.is_finished():
                self.console.print(f"{title}: done already", highlight=False, soft_wrap=True)
                continue
            trial = self._resumed(cell) if cell else self.search.ask()
            trial.set_user_attr("cell", name)
            trial.set_user_attr("title", title)
            yield trial

    def sampled(self, count: int) -> Iterator[optuna.Trial]:
        """Return the trials that an earlier command left unfinished, then new ones until `count`
        have begun.
        """
        for trial in self.search.trials:
            if trial.state is TrialState.RUNNING:
                yield self._resumed(trial)
        while sum(each.state is not TrialState.WAITING for each in self.search.trials) < count:
            trial = self.search.ask()
            trial.set_user_attr("title", f"trial {trial.number + 1}")
            yield trial

    def run(
        self,
        trials: Iterator[optuna.Trial],
        start: Callable[[optuna.Trial], RunningCell],
        *,
        at_once: int = 1,
        minutes: float = 0.0,
    ) -> None:
        """Run the trials' cells until none is left or the minutes are over (0: no limit).

        An exception, and the end of the minutes, stop the cells that run.
        """
        running: list[tuple[optuna.Trial, RunningCell]] = []
        ends = time.monotonic() + 60 * (minutes or math.inf)
        try:
            while time.monotonic() < ends:
                while len(running) < at_once and (trial := next(trials, None)):
                    running.append((trial, start(trial)))
                if not running:
                    return
                running = [each for each in running if not self._ended(*each)]
                if running:
                    time.sleep(POLL_S)
        finally:
            for _, cell in running:
                cell.close()

    def _ended(self, trial: optuna.Trial, cell: RunningCell) -> bool:
        """Let a cell go on; return whether it has ended, after telling the journal."""
        try:
            next(cell)
        except StopIteration as end:
            state = TrialState.FAIL if end.value is None else TrialState.COMPLETE
            self.search.tell(trial, end.value, state)
            return True
        except optuna.TrialPruned:
            self.search.tell(trial, state=TrialState.PRUNED)
            return True
        except CellFailed as error:
            trial.set_user_attr("failed", str(error))
            text = f"{trial.user_attrs['title']} failed: {error}"
            self.console.print(text, style="red", highlight=False, soft_wrap=True)
            return True
        return False

    def _resumed(self, trial: FrozenTrial) -> optuna.Trial:
        study_id = self.storage.get_study_id_from_name(self.search.study_name)
        trial_id = self.storage.get_trial_id_from_study_id_trial_number(study_id, trial.number)
        resumed = optuna.Trial(self.search, trial_id)
        resumed.set_user_attr("failed", "")
        # set again, because a kill may have come before it was set
        resumed.set_user_attr("title", f"trial {trial.number + 1}")
        return resumed
