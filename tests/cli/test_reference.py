"""The pages that are generated from code agree with the code."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.reference.pages import ROOT, pages


@pytest.mark.parametrize(
    ("path", "text"),
    pages().items(),
    ids=lambda value: value.name if isinstance(value, Path) else "",
)
def test_a_generated_page_is_up_to_date(path: Path, text: str) -> None:
    assert path.read_text(encoding="utf-8") == text, (
        f"{path.relative_to(ROOT)} is out of date: run `make docs`"
    )
