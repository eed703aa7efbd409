"""torch's DTensor, with which verl's saves hold the shards of FSDP2.

torch has no public way to read or to make one shard without a process group of all ranks. Private
names of torch 2.13; torch is pinned.
"""

from __future__ import annotations

from typing import Any


def is_shard(value: object) -> bool:
    from torch.distributed.tensor import DTensor

    return isinstance(value, DTensor)


def reshard_tensor(shards: list[Any], rank: int, ranks: int) -> Any:
    """Return the shard of one of `ranks` ranks.

    shards: of all former ranks, over one dimension. They are concatenated and split again as FSDP2
    splits them (torch.chunk).
    """
    import torch
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.tensor import DTensor, Shard
    from torch.distributed.tensor._dtensor_spec import DTensorSpec

    spec = shards[0]._spec
    [placement] = spec.placements
    local = shards[0]._local_tensor
    if isinstance(placement, Shard):
        whole = torch.cat([shard._local_tensor for shard in shards], dim=placement.dim)
        pieces = whole.chunk(ranks, dim=placement.dim)  # fewer than ranks if the tensor is small
        local = (pieces[rank] if rank < len(pieces) else whole.narrow(placement.dim, 0, 0)).clone()
    dtensor: Any = DTensor  # untyped
    mesh = DeviceMesh(
        spec.mesh.device_type,
        list(range(ranks)),
        mesh_dim_names=spec.mesh.mesh_dim_names,
        _init_backend=False,
        _rank=rank,
    )
    return dtensor(
        local,
        DTensorSpec(mesh, spec.placements, tensor_meta=spec.tensor_meta),
        requires_grad=shards[0].requires_grad,
    )
