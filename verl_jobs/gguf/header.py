"""Read metadata and the list of tensors of a GGUF file, without the weights.

In: a path. Out: a `Header`, or `UnfitStart`. Takes a fraction of a second: the `gguf` package's own
reader takes many for a vocabulary of 49,152, too slow for a check before a run.
Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, versions 2 and 3.
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verl_jobs.sft.start import UnfitStart

KNOWN = ("llama",)  # values of general.architecture
VERSIONS = (2, 3)
# formats of struct by the file's number of a type
SCALARS = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
STRING, ARRAY = 8, 9


@dataclass(frozen=True)
class Tensor:
    """A tensor's place: shape as numpy has it, ggml's number of its type, bytes from the start."""

    shape: tuple[int, ...]
    kind: int
    offset: int


@dataclass(frozen=True)
class Header:
    """What a GGUF file says about its model."""

    path: Path
    metadata: dict[str, Any]
    tensors: dict[str, Tensor]

    def get(self, key: str, default: Any = None) -> Any:
        """Return a value of the metadata, by its key under the architecture."""
        return self.metadata.get(f"{self.metadata['general.architecture']}.{key}", default)

    def need(self, key: str) -> Any:
        """Return a value that the architecture must have. Raises UnfitStart."""
        if (value := self.get(key)) is None:
            architecture = self.metadata["general.architecture"]
            raise UnfitStart(f"{self.path}: no key {architecture}.{key}: convert the model again")
        return value

    def shape(self, tensor: str) -> tuple[int, ...]:
        """Return the shape of a tensor. Raises UnfitStart if the file has none of this name."""
        if tensor not in self.tensors:
            raise UnfitStart(f"{self.path}: no tensor {tensor}: convert the model again")
        return self.tensors[tensor].shape

    @property
    def tied(self) -> bool:
        """Return whether the output layer is the embedding."""
        return "output.weight" not in self.tensors

    @property
    def heads(self) -> tuple[int, int]:
        """Return the number of heads, and of those for keys and values."""
        heads = self.need("attention.head_count")
        return heads, self.get("attention.head_count_kv", heads)

    @property
    def head(self) -> int:
        """Return the width of a head."""
        width = self.need("embedding_length") // self.heads[0]
        return int(self.get("attention.key_length", width))


def read_header(path: Path) -> Header:
    """Return metadata and tensors. Raises UnfitStart for another format or architecture."""
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise UnfitStart(f"{path} is not a GGUF file: name another with gguf:PATH")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            try:
                header = _Reader(data).header(path)
            except (struct.error, UnicodeDecodeError, KeyError, OverflowError) as error:
                raise UnfitStart(
                    f"{path}: its header cannot be read ({type(error).__name__}): it is damaged or "
                    "truncated; download it again"
                ) from None
    architecture = header.metadata.get("general.architecture")
    if architecture not in KNOWN:
        raise UnfitStart(
            f"{path}: general.architecture is {architecture!r}, known: {', '.join(KNOWN)}: "
            "convert it to a Hugging Face folder with another tool"
        )
    return header


class _Reader:
    def __init__(self, data: mmap.mmap) -> None:
        self.data, self.at = data, 4

    def header(self, path: Path) -> Header:
        version = self.scalar("I")
        if version not in VERSIONS:
            raise UnfitStart(
                f"{path}: GGUF version {version}, known: little-endian 2 and 3: convert it again"
            )
        tensors, keys = self.scalar("Q"), self.scalar("Q")
        metadata = {self.string(): self.value(self.scalar("I")) for _ in range(keys)}
        places = {}
        for _ in range(tensors):
            name = self.string()
            shape = tuple(reversed([self.scalar("Q") for _ in range(self.scalar("I"))]))
            places[name] = Tensor(shape, self.scalar("I"), self.scalar("Q"))
        alignment = metadata.get("general.alignment", 32)
        start = -(-self.at // alignment) * alignment
        return Header(
            path,
            metadata,
            {name: Tensor(t.shape, t.kind, start + t.offset) for name, t in places.items()},
        )

    def scalar(self, form: str) -> Any:
        (value,) = struct.unpack_from(f"<{form}", self.data, self.at)
        self.at += struct.calcsize(f"<{form}")
        return value

    def string(self) -> str:
        length = self.scalar("Q")
        (text,) = struct.unpack_from(f"<{length}s", self.data, self.at)
        self.at += length
        return str(text, "utf-8")

    def value(self, kind: int) -> Any:
        if kind == STRING:
            return self.string()
        if kind != ARRAY:
            return self.scalar(SCALARS[kind])
        of, count = self.scalar("I"), self.scalar("Q")
        if of not in SCALARS:
            return [self.value(of) for _ in range(count)]
        form = f"<{count}{SCALARS[of]}"
        values = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        return list(values)
