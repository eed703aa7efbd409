"""The wheel `ratchet-judge` has all packages under `ratchet`, and judges without extras."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from deploy.judge_wheel import prefixed, write
from rewards.composite import reward_hash
from rewards.config import RewardConfig
from tests.test_architecture import PACKAGES

LINE = {
    "id": 7,
    "source": "f = abs",
    "problem": {"style": "call", "entry_point": "f", "tests": [{"args": [-2], "expected": 2}]},
}
PIP = (sys.executable, "-m", "pip", "-q", "--disable-pip-version-check")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("judge")
    write(folder / "source")
    wheel = ("wheel", "--no-deps", "--no-build-isolation", "-w", folder, folder / "source")
    subprocess.run([*PIP, *wheel], check=True)
    target = ("install", "--no-deps", "--no-index", "--target", folder / "installed")
    subprocess.run([*PIP, *target, *folder.glob("*.whl")], check=True)
    return folder / "installed"


def run(installed: Path, cwd: Path, code: str, text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=cwd,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(installed)},
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_the_wheel_has_one_top_level_name(installed: Path) -> None:
    [wheel] = installed.parent.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"ratchet"}


@pytest.mark.slow
def test_a_program_is_judged_without_an_import_of_another_name(
    installed: Path, tmp_path: Path
) -> None:
    code = f"""
import sys
for name in {[*PACKAGES, "torch", "verl", "dagster", "numpy"]!r}:
    sys.modules[name] = None  # an import of it fails
from ratchet.cli.main import main
sys.argv = ["ratchet", "judge"]
main()
"""
    result = run(installed, tmp_path, code, json.dumps(LINE))
    assert json.loads(result.stdout or "{}").get("verdict") == "AC", result.stderr


@pytest.mark.slow
def test_a_missing_extra_is_named_in_one_line(installed: Path, tmp_path: Path) -> None:
    code = """
import sys
sys.modules["numpy"] = None
from ratchet.cli.main import main
sys.argv = ["ratchet", "compare", "a.json"]
main()
"""
    result = run(installed, tmp_path, code)
    expected = "error: this needs numpy: pip install 'ratchet-judge[compare]'\n"
    assert (result.returncode, result.stderr) == (2, expected)


@pytest.mark.slow
def test_a_reward_has_the_same_hash_as_in_the_clone(installed: Path, tmp_path: Path) -> None:
    code = (
        "from ratchet.rewards.composite import reward_hash as h\n"
        "from ratchet.rewards.config import RewardConfig\nprint(h(RewardConfig()))"
    )
    result = run(installed, tmp_path, code)
    assert result.stdout.strip() == reward_hash(RewardConfig()), result.stderr


@pytest.mark.slow
def test_a_harness_has_the_same_version_as_in_the_clone(installed: Path, tmp_path: Path) -> None:
    code = (
        "from {0}artifacts.code_hash import hash_modules as h\n"
        "print(h(('{0}evaluation.judging.judge',), ('evaluation', 'problems', 'sandbox')))"
    )
    there, here = (run(at, tmp_path, code.format(prefix)) for at, prefix in (
        (installed, "ratchet."),
        (Path(__file__).parents[2], ""),
    ))  # fmt: skip
    assert there.stdout.strip() == here.stdout.strip() != "", there.stderr


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("from sandbox.wire import frame\n", "from ratchet.sandbox.wire import frame\n"),
        ("sandbox.wire = 1\n", "sandbox.wire = 1\n"),
        ('x = "-m sandbox.wire"\n', 'x = "-m ratchet.sandbox.wire"\n'),
        ('x = f"assets.{name}"\n', 'x = f"ratchet.assets.{name}"\n'),
        ('"""Programs run in the sandbox."""\n', '"""Programs run in the sandbox."""\n'),
        ('x = "set evaluation.benchmarks"\n', 'x = "set evaluation.benchmarks"\n'),
    ],
)
def test_only_names_of_modules_get_the_prefix(source: str, expected: str) -> None:
    assert prefixed(source) == expected


def test_an_import_that_binds_a_bare_name_is_refused() -> None:
    with pytest.raises(ValueError, match="import sandbox"):
        prefixed("import sandbox.wire\n")
