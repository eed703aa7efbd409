"""Lines of JSON with a hash: every row is read back, and a changed one is refused."""

import fcntl
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from artifacts.integrity import CorruptArtifact
from artifacts.json_lines import JsonLines, line_of, row_of

VALUES = st.one_of(st.text(), st.integers(), st.booleans(), st.none())
ROWS = st.dictionaries(st.text(max_size=8), VALUES, max_size=4)


@given(ROWS)
def test_a_row_is_read_back(row: dict[str, Any]) -> None:
    assert row_of(line_of(row)) == row
    assert line_of(row).count(b"\n") == 1


@given(row=ROWS, value=VALUES, data=st.data())
def test_a_row_with_another_value_is_refused(
    row: dict[str, Any], value: object, data: st.DataObject
) -> None:
    assume(row)
    changed = json.loads(line_of(row))
    changed[data.draw(st.sampled_from(sorted(row)))] = value
    if json.dumps(changed) != json.dumps(json.loads(line_of(row))):
        with pytest.raises(ValueError, match="changed"):
            row_of(json.dumps(changed).encode())


def test_a_changed_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.jsonl"
    lines = JsonLines(path)
    lines.open(lambda row: None, "remove the line")
    lines.append([{"key": str(number), "verdict": "WA"} for number in range(3)])
    lines.close()
    path.write_text(path.read_text().replace('"1", "verdict": "WA"', '"1", "verdict": "AC"'))
    with pytest.raises(CorruptArtifact) as refused:
        lines.open(lambda row: None, "remove the line")
    assert f"{path}: line 2" in str(refused.value)


def test_a_refused_file_can_be_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.jsonl"
    path.write_bytes(b"{}\n")
    lines = JsonLines(path)
    with pytest.raises(CorruptArtifact):
        lines.open(lambda row: None, "remove the line")
    path.write_bytes(line_of({"key": "a"}))
    again = JsonLines(path)
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises if `lines` still holds it
    again.open(lambda row: None, "remove the line")
    again.close()


def test_a_line_without_a_hash_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.jsonl"
    path.write_text('{"key": "a"}\n')
    with pytest.raises(CorruptArtifact, match="line 1"):
        JsonLines(path).open(lambda row: None, "remove the line")


@pytest.mark.parametrize("bit", range(8))
def test_no_flipped_bit_of_a_line_is_read(bit: int) -> None:
    line = line_of({"key": "a", "verdict": "WA", "seconds": 0.5})
    for at in range(len(line) - 1):  # without the end of the line
        flipped = bytearray(line)
        flipped[at] ^= 1 << bit
        with pytest.raises((ValueError, TypeError)):
            row_of(bytes(flipped))
            pytest.fail(f"byte {at}")
