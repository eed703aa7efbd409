"""The hash of a model's weights: the same tensors give the same hash, however they are divided into
files.

In: a folder with `.safetensors` files. Out: a sha256 over each tensor's name, type, shape and data,
sorted by name. Such a file can also be written here, tensor by tensor and without torch.
Format: https://huggingface.co/docs/safetensors.
"""

from __future__ import annotations

import hashlib
import json
import math
import mmap
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Protocol

from artifacts.atomic import write_atomic
from artifacts.hashing import hash_data, hash_file

# Bits of the exponent, by type and the bytes of an element: all are set in an infinity and a NaN.
EXPONENTS = {
    "F64": (8, 0x7FF0_0000_0000_0000),
    "F32": (4, 0x7F80_0000),
    "F16": (2, 0x7C00),
    "BF16": (2, 0x7F80),
}
BLOCK = 1 << 26  # bytes that are looked at together
LENGTH = 8  # bytes of the header's length, little endian
METADATA = "__metadata__"  # key of the header that is no tensor


class RawTensor(NamedTuple):
    """One tensor as it lies in a file. dtype: the format's name (`F32`, `BF16`)."""

    dtype: str
    shape: Sequence[int]
    data: memoryview  # of bytes, row-major


class Writable(Protocol):
    def write(self, data: bytes | memoryview, /) -> int: ...


def write_tensors(file: Writable, tensors: Mapping[str, RawTensor]) -> None:
    """Write a `.safetensors` file front to back, sorted by name."""
    header: dict[str, Any] = {METADATA: {"format": "pt"}}
    end = 0
    for name in sorted(tensors):
        dtype, shape, data = tensors[name]
        header[name] = {
            "dtype": dtype,
            "shape": list(shape),
            "data_offsets": [end, end := end + data.nbytes],
        }
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % LENGTH)  # the data begins at a multiple of 8
    file.write(len(text).to_bytes(LENGTH, "little") + text)
    for name in sorted(tensors):
        file.write(tensors[name].data)


def weights_hash(folder: Path, content_hash: str = "") -> str:
    """Return the hash of the folder's tensors; "" without a `.safetensors` file.

    Folders within it, such as that of an adapter beside the merged weights, do not count.
    content_hash: of a published folder, whose result is stored beside it and read the next time.
    """
    known = folder.with_name(f".{folder.name}.weights")
    if content_hash and known.exists():
        of, _, weights = known.read_text(encoding="utf-8").strip().partition(" ")
        if of == content_hash:
            return weights
    weights = _hash(tensor for path in folder.glob("*.safetensors") for tensor in _tensors(path))
    if content_hash:
        write_atomic(known, f"{content_hash} {weights}\n")
    return weights


def tensors_hash(tensors: Mapping[str, RawTensor]) -> str:
    """Return the hash of tensors in memory: that of a folder that holds the same ones."""
    return _hash(
        (name, each.dtype, list(each.shape), hashlib.sha256(each.data).hexdigest())
        for name, each in tensors.items()
    )


def _hash(tensors: Iterable[tuple[str, str, list[int], str]]) -> str:
    ordered = sorted(tensors)
    return hash_data(ordered) if ordered else ""


def element_count(path: Path) -> int:
    """Return the number of elements of a file's tensors; 0 for a file that has no header."""
    with path.open("rb") as file:
        header = _header(file)
    return sum(math.prod(tensor["shape"]) for tensor in (header or {}).values())


def not_finite(folder: Path) -> list[str]:
    """Return the names of the folder's tensors that hold an infinity or a NaN, sorted.

    Reads block by block, so that a large model needs little memory. Types other than EXPONENTS do
    not count.
    """
    return sorted(name for path in folder.glob("*.safetensors") for name in _not_finite(path))


def _not_finite(path: Path) -> Iterator[str]:
    import numpy as np

    with path.open("rb") as file:
        header = _header(file) or {}
        start = file.tell()
        for name, tensor in header.items():
            if tensor["dtype"] not in EXPONENTS:
                continue
            size, bits = EXPONENTS[tensor["dtype"]]
            begin, end = tensor["data_offsets"]
            file.seek(start + begin)
            for at in range(begin, end, BLOCK):
                block = np.frombuffer(file.read(min(BLOCK, end - at)), f"<u{size}")
                if ((block & bits) == bits).any():
                    yield name
                    break


def _tensors(path: Path) -> Iterator[tuple[str, str, list[int], str]]:
    """Yield name, type, shape and sha256 of each tensor; one without a name for another file."""
    with path.open("rb") as file:
        header = _header(file)
        if header is None:
            yield "", "", [], hash_file(path)
            return
        start = file.tell()
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            for name, tensor in header.items():
                begin, end = tensor["data_offsets"]
                with memoryview(content) as view, view[start + begin : start + end] as data:
                    digest = hashlib.sha256(data).hexdigest()
                yield name, tensor["dtype"], tensor["shape"], digest


def _header(file: BinaryIO) -> dict[str, Any] | None:
    """Return the tensors of a file by name, with dtype, shape and data_offsets; None if it has no
    header.
    """
    length = int.from_bytes(file.read(LENGTH), "little")
    size = os.fstat(file.fileno()).st_size
    try:
        header = json.loads(file.read(length)) if length < size else None
    except ValueError:
        return None
    if not isinstance(header, dict):
        return None
    header.pop(METADATA, None)
    return header
