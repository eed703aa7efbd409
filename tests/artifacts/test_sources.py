"""The files that make up a module are derived from its source text.

A hand-written list could be out of date.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from artifacts.code_hash import hash_code, parts
from tests.children import python

ROOT = Path(__file__).parents[2]
REWARDS = ROOT / "rewards"
PARTS = {
    "composite",
    "correctness",
    "extraction",
    "lint",
    "security",
    "trust",
    "worker",
}
HASH = """
import sys
sys.path.insert(0, sys.argv[1])
from rewards.composite import reward_hash
from rewards.config import RewardConfig, Weights
print(reward_hash(RewardConfig(weights=Weights(**{name: 0.1 for name in sys.argv[2:]}))))
"""


def test_the_reward_code_includes_imported_and_started_files() -> None:
    modules = {path.stem for path in parts(REWARDS / "composite.py")}
    assert modules >= PARTS
    assert not modules & {"battery", "search", "own", "style", "efficiency"}
    assert {path.stem for path in parts(REWARDS / "components" / "style.py")} >= {"format", "lint"}


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("copy")
    for package in ("rewards", "artifacts", "problems", "sandbox"):
        shutil.copytree(
            ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__")
        )
    return folder


def reward_hash(copy: Path, *weighted: str) -> str:
    return python("-c", HASH, str(copy), *weighted, cwd=copy, check=True).stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", ["components/format", "components/style", "mathematics/worker"])
def test_an_edited_component_changes_the_reward_hash(copy: Path, name: str) -> None:
    before, path = reward_hash(copy, "style"), copy / "rewards" / f"{name}.py"
    path.write_text(path.read_text(encoding="utf-8") + "\nEDITED = True\n", encoding="utf-8")
    assert reward_hash(copy, "style") != before


@pytest.mark.slow
def test_an_edit_to_a_component_without_a_weight_changes_nothing(copy: Path) -> None:
    before, path = reward_hash(copy), copy / "rewards" / "components" / "efficiency.py"
    path.write_text(path.read_text(encoding="utf-8") + "\nEDITED = True\n", encoding="utf-8")
    assert reward_hash(copy) == before


@pytest.mark.slow
def test_imports_of_a_component_are_part_of_the_reward(copy: Path) -> None:
    style, before = copy / "rewards" / "components" / "style.py", reward_hash(copy, "style")
    (copy / "rewards" / "brevity.py").write_text("MOST = 100\n", encoding="utf-8")
    assert reward_hash(copy, "style") == before
    style.write_text(
        style.read_text(encoding="utf-8") + "\nfrom rewards.brevity import MOST\n", encoding="utf-8"
    )
    imported = reward_hash(copy, "style")
    (copy / "rewards" / "brevity.py").write_text("MOST = 90\n", encoding="utf-8")
    assert len({before, imported, reward_hash(copy, "style")}) == 3


@pytest.mark.slow
def test_a_new_component_without_a_weight_changes_no_hash(copy: Path) -> None:
    before = reward_hash(copy, "style")
    (copy / "rewards" / "components" / "short.py").write_text(
        "from rewards.components.component import Component\n"
        "COMPONENT = Component('Shortness.', lambda program: 1.0 / (1 + len(program.code)))\n",
        encoding="utf-8",
    )
    assert reward_hash(copy, "style") == before != reward_hash(copy, "style", "short")


def test_comments_and_docstrings_do_not_change_the_hash(tmp_path: Path) -> None:
    plain, documented, other = (
        tmp_path / name for name in ("plain.py", "documented.py", "other.py")
    )
    plain.write_text("def f(x):\n    return x\n")
    documented.write_text(
        '"""About."""\n\n\ndef f(x):  # why\n    """Return x."""\n    return (x)\n'
    )
    other.write_text("def f(x):\n    return -x\n")
    assert hash_code(plain) == hash_code(documented) != hash_code(other)
