"""The image's recipe is complete."""

from __future__ import annotations

import re
from pathlib import Path

from tests.test_architecture import PACKAGES, ROOT


def test_the_image_contains_all_packages_from_existing_files() -> None:
    text = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
    copied = [
        source
        for line in re.findall(r"^COPY (.*)", text, re.MULTILINE)
        for source in line.split()[:-1]
    ]
    assert not [source for source in copied if not (ROOT / source).exists()]
    assert set(PACKAGES) <= set(copied)
    assert text.index("USER ratchet") < text.index("CMD")
    let_in = [
        line[1:]
        for line in Path(ROOT / "deploy" / "Dockerfile.dockerignore")
        .read_text(encoding="utf-8")
        .splitlines()
        if line.startswith("!")
    ]
    assert not [
        source for source in copied if not any(Path(source).match(pattern) for pattern in let_in)
    ]
