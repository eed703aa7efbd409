"""The hash of weights depends on the tensors, and not on how they are saved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

from artifacts.hashing import HashedFile, hash_file
from artifacts.tensors import RawTensor, not_finite, weights_hash, write_tensors

Tensors = Mapping[str, npt.NDArray[Any]]
TENSORS: Tensors = {
    "a.weight": np.arange(6, dtype=np.float32).reshape(2, 3),
    "b.weight": np.arange(6, dtype=np.float32).reshape(3, 2),
    "c.bias": np.zeros(3, dtype=np.float16),
    "d.empty": np.zeros((0, 2), dtype=np.float32),
}


def saved(folder: Path, parts: Sequence[Tensors], metadata: dict[str, str] | None = None) -> str:
    folder.mkdir()
    for number, part in enumerate(parts):
        save_file(dict(part), folder / f"model-{number}.safetensors", metadata)
    return weights_hash(folder)


@given(st.lists(st.integers(0, 2), min_size=len(TENSORS), max_size=len(TENSORS)))
def test_the_same_tensors_in_other_files_have_the_same_hash(places: list[int]) -> None:
    parts: list[dict[str, npt.NDArray[Any]]] = [{}, {}, {}]
    for place, name in zip(places, TENSORS, strict=True):
        parts[place][name] = TENSORS[name]
    with TemporaryDirectory() as folder:
        one = saved(Path(folder, "one"), [TENSORS])
        assert saved(Path(folder, "parts"), parts, {"format": "pt"}) == one


def test_a_file_written_front_to_back_holds_the_tensors_and_knows_its_hash(tmp_path: Path) -> None:
    dtypes = {"float32": "F32", "float16": "F16"}
    path = tmp_path / "model.safetensors"
    with HashedFile(path) as file:
        write_tensors(
            file,
            {
                name: RawTensor(dtypes[str(each.dtype)], each.shape, each.data.cast("B"))
                if each.size
                else RawTensor(dtypes[str(each.dtype)], each.shape, memoryview(b""))
                for name, each in TENSORS.items()
            },
        )
    assert file.sha256 == hash_file(path)
    assert weights_hash(tmp_path) == saved(tmp_path / "by_safetensors", [TENSORS])
    loaded = load_file(path)
    assert all(np.array_equal(loaded[name], each) for name, each in TENSORS.items())


@pytest.mark.parametrize(
    "changed",
    [
        {**TENSORS, "a.weight": TENSORS["a.weight"] + np.float32(1e-6)},
        {**TENSORS, "a.weight": TENSORS["b.weight"], "b.weight": TENSORS["a.weight"]},
        {**TENSORS, "a.weight": TENSORS["a.weight"].astype(np.float64)},
        {**TENSORS, "c.bias": np.zeros((3, 1), dtype=np.float16)},
        {name: tensor for name, tensor in TENSORS.items() if name != "c.bias"},
        {f"x.{name}": tensor for name, tensor in TENSORS.items()},
    ],
    ids=["value", "order", "type", "shape", "missing", "name"],
)
def test_other_tensors_have_another_hash(changed: Tensors, tmp_path: Path) -> None:
    assert saved(tmp_path / "one", [TENSORS]) != saved(tmp_path / "other", [changed])


def test_another_file_counts_by_its_content(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    hashes = {weights_hash(tmp_path)}
    for content in (b"", b"text", b"text2", bytes(8) + b"x", b"\2" + bytes(7) + b"[]x"):
        path.write_bytes(content)
        hashes.add(weights_hash(tmp_path))
    assert len(hashes) == 6
    assert "" in hashes


def test_a_published_folders_hash_is_read_from_beside_it(tmp_path: Path) -> None:
    folder = tmp_path / "key"
    expected = saved(folder, [TENSORS])
    assert weights_hash(folder, "content") == expected
    (folder / "model-0.safetensors").unlink()
    assert weights_hash(folder, "content") == expected
    assert weights_hash(folder, "other content") == ""


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bfloat16"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf"), -3e4])
def test_tensors_that_are_not_finite_are_named(dtype: str, value: float, tmp_path: Path) -> None:
    import torch
    from safetensors.torch import save_file as save_torch

    values = torch.tensor([[1.0, 2.0], [0.0, value]], dtype=getattr(torch, dtype))
    save_torch({"fine": torch.ones(3), "odd": values}, tmp_path / "model.safetensors")
    assert not_finite(tmp_path) == ([] if np.isfinite(value) else ["odd"])
