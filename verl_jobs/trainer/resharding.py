"""A save of so many ranks as one of another number: verl names its files by the number of ranks, and loads no other.

In: a sealed save of FSDP2 over one dimension (no copies of shards, no Megatron). Out: the files of the other number beside, and the save sealed anew.
Nothing is recomputed: shards are put together and cut again as FSDP2 cuts them (torch.chunk). Random numbers are those
of the first ranks, and of the last one again where there are more.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from verl_jobs.trainer.checkpoints import seal

KINDS = ("model", "optim", "extra_state")


def ranks_of(save: Path) -> set[int]:
    """For how many ranks this save has files."""
    return {
        int(path.name.split("_")[3])
        for path in (save / "actor").glob("model_world_size_*_rank_0.pt")
    }


def reshard(save: Path, ranks: int) -> bool:
    """Makes the save loadable with so many ranks; says whether there was anything to do. A kill in between leaves the old seal, which still holds."""
    if ranks in (there := ranks_of(save)):
        return False
    for learner in ("actor", "critic"):
        if (save / learner).is_dir():
            _reshard(save / learner, max(there), ranks)
    seal(save)
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
                else _cut(states, rank, after)
            )
            torch.save(state, folder / f"{kind}_world_size_{after}_rank_{rank}.pt")


def _cut(states: list[Any], rank: int, ranks: int) -> Any:
    """The same tree for one of so many ranks. states: what each of the former ranks holds at this place of the tree."""
    from torch.distributed.tensor import DTensor

    first = states[0]
    if isinstance(first, DTensor):
        return _piece(states, rank, ranks)
    if isinstance(first, dict):
        return type(first)(
            (key, _cut([state[key] for state in states], rank, ranks)) for key in first
        )
    if isinstance(first, list):
        return [_cut(list(each), rank, ranks) for each in zip(*states, strict=True)]
    return first


def _piece(shards: list[Any], rank: int, ranks: int) -> Any:
    import torch
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.tensor import DTensor, Shard
    from torch.distributed.tensor._dtensor_spec import DTensorSpec

    spec = shards[0]._spec
    [placement] = spec.placements
    local = shards[0]._local_tensor
    if isinstance(placement, Shard):
        whole = torch.cat([shard._local_tensor for shard in shards], dim=placement.dim)
        pieces = whole.chunk(ranks, dim=placement.dim)  # fewer than ranks where the tensor is small
        local = (pieces[rank] if rank < len(pieces) else whole.narrow(placement.dim, 0, 0)).clone()
    made: Any = DTensor  # it has no types
    mesh = DeviceMesh(
        spec.mesh.device_type,
        list(range(ranks)),
        mesh_dim_names=spec.mesh.mesh_dim_names,
        _init_backend=False,
        _rank=rank,
    )
    return made(
        local,
        DTensorSpec(mesh, spec.placements, tensor_meta=spec.tensor_meta),
        requires_grad=shards[0].requires_grad,
    )
