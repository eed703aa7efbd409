"""The image's recipe is complete."""

from __future__ import annotations

import json
import re
from pathlib import Path

from sandbox.isolation.seccomp import PROBED
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


def test_the_layer_of_the_packages_depends_on_the_locks_alone() -> None:
    recipe = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
    before = recipe[: recipe.index("deploy/install.py ${KIND}")]
    copied = re.findall(r"^COPY (.*) \S+$", before, re.MULTILINE)
    assert {source for line in copied for source in line.split()} == {
        "requirements.lock",
        "requirements-cuda.lock",
        "requirements-gpu.lock",
        "deploy/install.py",
    }
    assert "pyproject.toml" in recipe[len(before) :]


def test_the_shipped_seccomp_profile_leaves_every_counted_call_to_the_sandbox() -> None:
    profile = json.loads((ROOT / "deploy" / "seccomp.json").read_text(encoding="utf-8"))
    refused = {name for rule in profile["syscalls"] for name in rule["names"]}
    assert not refused & set(PROBED)
