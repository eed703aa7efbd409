"""A sealed file is read as it was written, or not at all."""

from __future__ import annotations

import json

import pytest

from artifacts.integrity import CorruptArtifact, seal, unseal

DATA = {"kind": "scores", "files": {"a": "b"}, "number": 3, "note": ""}
TEXT = seal(json.dumps(DATA, indent=1))


@pytest.mark.parametrize("bit", range(8))
def test_no_flipped_bit_of_a_sealed_file_is_read(bit: int) -> None:
    content = TEXT.encode()
    for at in range(len(content)):
        flipped = bytearray(content)
        flipped[at] ^= 1 << bit
        try:
            data = unseal(flipped.decode(), "file.json")
        except (ValueError, CorruptArtifact):
            continue
        assert data == DATA, f"byte {at}"
        pytest.fail(f"byte {at} is not covered")
