"""verl dataset whose rows are selected by a curriculum.

It is set as `data.custom_cls`, because verl 0.9.1 has no hook for a sampler. verl's dataloader asks
for a batch of positions; `Drawn` returns as many rows selected by the table. The table's state is
part of the dataloader's state (torchdata asks each dataset for one), so verl's own `data.pt` holds
it. A user's dataset class is wrapped in the same way. `data.curriculum` holds the schedule and the
`steps` of the training; `data.dataloader_num_workers` must be 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from verl.utils.dataset.rl_dataset import RLHFDataset

from problems.chat_template import accepted
from problems.difficulty.pass_rate_prior import FILE, read_expected
from verl_jobs.config.curriculum import Curriculum
from verl_jobs.config.references import is_reference, load
from verl_jobs.curriculum import curriculum
from verl_jobs.curriculum.curriculum import Table
from verl_jobs.curriculum.own_sampler import OwnTable


class CurriculumMixin:
    """Mix-in for a dataset class of verl's kind.

    Selects rows of the training files only; validation is unchanged.
    """

    table: Table | OwnTable | None = None

    def __init__(self, data_files: Any, tokenizer: Any, config: Any, **options: Any) -> None:
        # the arguments of RLHFDataset
        super().__init__(  # type: ignore[call-arg]
            data_files=data_files, tokenizer=tokenizer, config=config, **options
        )
        if config.get("curriculum") and _as_list(data_files) == _as_list(config.train_files):
            self.table = self._make(config)
            curriculum.set_table(self.table)

    def _make(self, config: Any) -> Table | OwnTable:
        settings = dict(config.curriculum)
        steps, sampler = settings.pop("steps"), settings.pop("sampler", "")
        files = [Path(file).with_name(FILE) for file in _as_list(config.train_files)]
        expected_by_id = {
            row.problem_id: row for file in dict.fromkeys(files) for row in read_expected(file)
        }
        # without problems that are too long
        ids = [
            str(extra_info["problem_id"])
            for extra_info in self.dataframe["extra_info"]  # type: ignore[attr-defined]
        ]
        if missing := next(
            (problem_id for problem_id in ids if problem_id not in expected_by_id), None
        ):
            raise ValueError(
                f"{files[0]} has no row for {missing}, which is in the training rows: write both "
                "files again"
            )
        expected, seed = [expected_by_id[problem_id] for problem_id in ids], int(config.seed or 0)
        if sampler:
            return OwnTable(sampler, expected, steps=steps, seed=seed)
        return Table(Curriculum.model_validate(settings), expected, steps=steps, seed=seed)

    def maybe_filter_out_long_prompts(self, dataframe: Any) -> Any:
        """Leave the filter to verl, with prompts as the model's template takes them: verl drops a
        row that it refuses.
        """
        key, tokenizer = self.prompt_key, self.tokenizer  # type: ignore[attr-defined]
        if any(chat and chat[0]["role"] == "system" for chat in dataframe[key]):
            dataframe = dataframe.map(lambda row: {key: accepted(tokenizer, row[key])})
        return super().maybe_filter_out_long_prompts(dataframe)  # type: ignore[misc]

    def __getitems__(self, positions: Sequence[int]) -> list[dict[str, Any]]:
        rows = self.table.draw(len(positions)) if self.table else positions
        return [self[row] for row in rows]  # type: ignore[index]

    def state_dict(self) -> dict[str, Any]:
        return self.table.state_dict() if self.table else {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if self.table:
            self.table.load_state_dict(state)


class CurriculumDataset(CurriculumMixin, RLHFDataset):
    """verl's own dataset with selected rows."""


def __getattr__(name: str) -> Any:
    """Resolve verl's `getattr(module, name)` for a reference to a user's dataset class.

    Returns that class with `Drawn` mixed in. References: verl_jobs/config/references.py.
    """
    if not is_reference(name):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    dataset_class = load(name)
    return (
        dataset_class
        if issubclass(dataset_class, CurriculumMixin)
        else type(f"Drawn{dataset_class.__name__}", (CurriculumMixin, dataset_class), {})
    )


def _as_list(files: Any) -> list[str]:
    return [files] if isinstance(files, str) else [str(file) for file in files]
