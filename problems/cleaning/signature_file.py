"""MinHash signatures in files on local disk, for sets whose signatures do not fit into memory.

In: signatures, appended in blocks. Out: `Rows` for `minhash.alike`, of any rows in any order. A
band's keys are read one band at a time, 8 bytes a row. Whole signatures are read only for the rows
that are compared.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from problems.cleaning.minhash import BANDS, PERMUTATIONS, Hashes, Signatures, band_keys


@dataclass
class SignatureFile:
    """Appended signatures: `folder/name.rows`, and `folder/name.keys` with blocks of band keys."""

    folder: Path
    name: str
    blocks: list[int] = field(default_factory=list)  # rows of each

    def __len__(self) -> int:
        return sum(self.blocks)

    def append(self, rows: Signatures) -> None:
        if not len(rows):
            return
        keys = np.stack([band_keys(rows, number) for number in range(BANDS)])
        for suffix, array in (("rows", rows), ("keys", keys)):
            with (self.folder / f"{self.name}.{suffix}").open("ab") as file:
                file.write(np.ascontiguousarray(array).tobytes())
        self.blocks.append(len(rows))

    def band(self, number: int) -> Hashes:
        keys, at, start = np.empty(len(self), np.uint64), 0, 0
        if self.blocks:
            with (self.folder / f"{self.name}.keys").open("rb") as file:
                for count in self.blocks:
                    file.seek(start + 8 * number * count)
                    keys[at : at + count] = np.fromfile(file, np.uint64, count)
                    at, start = at + count, start + 8 * BANDS * count
        return keys

    def read(self, places: NDArray[np.int64]) -> Signatures:
        # Mapped for this call alone: pages that stay mapped count as memory of the process.
        path, shape = self.folder / f"{self.name}.rows", (len(self), PERMUTATIONS)
        return np.memmap(path, np.uint32, "r", shape=shape)[places].view(np.ndarray)

    def take(self, places: NDArray[np.int64]) -> SignatureRows:
        return SignatureRows(self, places)


@dataclass(frozen=True)
class SignatureRows:
    """Some rows of a file, in the order of `places`."""

    file: SignatureFile
    places: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.places)

    def band(self, number: int) -> Hashes:
        return self.file.band(number)[self.places]

    def read(self, places: NDArray[np.int64]) -> Signatures:
        return self.file.read(self.places[places])
