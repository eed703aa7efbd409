"""Convert a save to another number of ranks.

verl names its files by the number of ranks and loads no others. Input: a sealed save of FSDP2 over
one dimension (no copies of shards, no Megatron). Output: additional files for the other number, and
a new seal. No values change: shards are concatenated and split again as FSDP2 splits them
(torch.chunk). Each rank keeps its random state; additional ranks get a copy of the last one's.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from verl_jobs.adapter.shards import is_shard, reshard_tensor
from verl_jobs.trainer.checkpoints import SEAL, seal_save

KINDS = ("model", "optim", "extra_state")


def ranks_of(save: Path) -> set[int]:
    """Return the numbers of ranks for which this save has files, sealed ones: a kill may have left
    a part of others.
    """
    sealed = json.loads((save / SEAL).read_text(encoding="utf-8"))
    matches = (re.fullmatch(r"actor/model_world_size_(\d+)_rank_0\.pt", name) for name in sealed)
    return {int(match[1]) for match in matches if match}


def reshard(save: Path, ranks: int) -> bool:
    """Make the save loadable with `ranks` ranks; return whether it had to be converted.

    A kill in between leaves the old seal, which is still valid.
    """
    if ranks in (stored_ranks := ranks_of(save)):
        return False
    for learner in ("actor", "critic"):
        if (save / learner).is_dir():
            _reshard(save / learner, max(stored_ranks), ranks)
    seal_save(save)
    return True


def _reshard(folder: Path, before: int, after: int) -> None:
    import torch

    for kind in KINDS:
        states = [
            torch.load(
                folder / f"{kind}_world_size_{before}_rank_{rank}.pt",
                map_location="cpu",
                weights_only=False,
            )
            for rank in range(before)
        ]
        for rank in range(after):
            state = (
                states[min(rank, before - 1)]
                if kind == "extra_state"
                else _shard_state(states, rank, after)
            )
            torch.save(state, folder / f"{kind}_world_size_{after}_rank_{rank}.pt")


def _shard_state(states: list[Any], rank: int, ranks: int) -> Any:
    """Return the state tree of one of `ranks` ranks.

    states: what each former rank holds at this place of the tree.
    """
    first = states[0]
    if is_shard(first):
        return reshard_tensor(states, rank, ranks)
    if isinstance(first, dict):
        return type(first)(
            (key, _shard_state([state[key] for state in states], rank, ranks)) for key in first
        )
    if isinstance(first, list):
        return [_shard_state(list(each), rank, ranks) for each in zip(*states, strict=True)]
    return first
