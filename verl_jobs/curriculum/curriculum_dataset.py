"""verl's dataset whose rows a curriculum draws: `data.custom_cls`, for verl 0.9.1 has no hook for a sampler.

verl's dataloader asks for a batch of positions; `Drawn` answers with the rows that the table draws, as many. The table's state lies in the
dataloader's state (torchdata asks each dataset for one), so verl's own `data.pt` holds it. A dataset class of the user's own is drawn the
same way. `data.curriculum` holds the schedule and the `steps` of the training; `data.dataloader_num_workers` must be 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from verl.utils.dataset.rl_dataset import RLHFDataset

from problems.difficulty.pass_rate_prior import FILE, read_expected
from verl_jobs.config.references import is_reference, load
from verl_jobs.config.training import Curriculum
from verl_jobs.curriculum import curriculum
from verl_jobs.curriculum.curriculum import Table
from verl_jobs.curriculum.own_sampler import OwnTable


class Drawn:
    """Before a dataset class of verl's kind; draws for the training files alone, validation stays as it is."""

    table: Table | OwnTable | None = None

    def __init__(self, data_files: Any, tokenizer: Any, config: Any, **options: Any) -> None:
        super().__init__(data_files=data_files, tokenizer=tokenizer, config=config, **options)  # type: ignore[call-arg]  # RLHFDataset's
        if config.get("curriculum") and _listed(data_files) == _listed(config.train_files):
            self.table = self._make(config)
            curriculum.use(self.table)

    def _make(self, config: Any) -> Table | OwnTable:
        told = dict(config.curriculum)
        steps, own = told.pop("steps"), told.pop("sampler", "")
        files = [Path(file).with_name(FILE) for file in _listed(config.train_files)]
        known = {
            row.problem_id: row for file in dict.fromkeys(files) for row in read_expected(file)
        }
        ids = [str(about["problem_id"]) for about in self.dataframe["extra_info"]]  # type: ignore[attr-defined]  # less what is too long
        if missing := next((problem_id for problem_id in ids if problem_id not in known), None):
            raise ValueError(
                f"{files[0]} does not know {missing}, which is in the training rows: make both anew"
            )
        expected, seed = [known[problem_id] for problem_id in ids], int(config.seed or 0)
        if own:
            return OwnTable(own, expected, steps=steps, seed=seed)
        return Table(Curriculum.model_validate(told), expected, steps=steps, seed=seed)

    def __getitems__(self, positions: Sequence[int]) -> list[dict[str, Any]]:
        rows = self.table.draw(len(positions)) if self.table else positions
        return [self[row] for row in rows]  # type: ignore[index]

    def state_dict(self) -> dict[str, Any]:
        return self.table.state_dict() if self.table else {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if self.table:
            self.table.load_state_dict(state)


class CurriculumDataset(Drawn, RLHFDataset):
    """verl's own dataset, drawn."""


def __getattr__(name: str) -> Any:
    """For verl's `getattr(module, name)` with a reference to a dataset class of the user's own (verl_jobs/config/references.py): that class, drawn."""
    if not is_reference(name):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    own = load(name)
    return own if issubclass(own, Drawn) else type(f"Drawn{own.__name__}", (Drawn, own), {})


def _listed(files: Any) -> list[str]:
    return [files] if isinstance(files, str) else [str(file) for file in files]
