"""Arrow's errors about a damaged parquet file are one line that names the file and the fix."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from problems.schema import read_parquet, write_parquet
from problems.sources.simple import generate
from rewards.choices import read_choices
from tests.cli.conftest import Called
from verl_jobs.agents.records import read_reviews


def cut_off(content: bytes) -> bytes:
    return content[: len(content) // 2]


def damaged_inside(content: bytes) -> bytes:
    """Damage the compressed pages; the footer stays."""
    pages = bytearray(content)
    for at in range(64, len(content) // 2, 7):
        pages[at] ^= 0x55
    return bytes(pages)


def emptied(content: bytes) -> bytes:
    return b""


def other_text(content: bytes) -> bytes:
    return b"no parquet\n"


@pytest.fixture(params=[cut_off, damaged_inside, emptied, other_text])
def damaged(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    file = tmp_path / "damaged.parquet"
    write_parquet(generate(), file)
    file.write_bytes(request.param(file.read_bytes()))
    return file


@pytest.mark.parametrize(
    "command",
    [
        ("data", "add", "mine", "--path", "{}"),
        ("data", "clean", "--from", "{}", "--out", "{}.clean"),
        ("data", "leaks", "{}", "--benchmark", "humaneval"),
    ],
    ids=lambda command: " ".join(command[:2]),
)
def test_a_command_names_it_in_one_line(
    ratchet: Called, tmp_path: Path, damaged: Path, command: tuple[str, ...]
) -> None:
    code, _, errors = ratchet(tmp_path / "home", *(each.format(damaged) for each in command))
    assert code == 2
    assert errors.startswith(f"error: {damaged}: not a complete parquet file (")
    assert errors.count("\n") == 1


@pytest.mark.parametrize("read", [read_parquet, read_choices, read_reviews])
def test_a_reader_names_it(damaged: Path, read: Callable[[Path], object]) -> None:
    with pytest.raises(ValueError, match=r"damaged\.parquet: not a complete parquet file"):
        read(damaged)
