"""The wheel contains the packages with their data and nothing else, and works outside the clone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml

from tests.test_architecture import PACKAGES, ROOT, shipped_files

pytestmark = pytest.mark.slow
DATA = {".yaml", ".json", ".jinja", ".txt", ".css", ".js"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a wheel built from a copy of the files that git lists.

    Stray files in the clone therefore do not get in.
    """
    source = tmp_path_factory.mktemp("source")
    for path in shipped_files():
        copy = source / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
    out = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "-q",
            "--no-deps",
            "--no-build-isolation",
            "-w",
            out,
            source,
        ],
        check=True,
    )
    return next(out.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("installed")
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "install",
            "-q",
            "--no-deps",
            "--no-index",
            "--target",
            target,
            wheel,
        ],
        check=True,
    )
    return target


def run_outside(
    installed: Path, cwd: Path, *command: str | Path
) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(installed)}
    return subprocess.run(
        [sys.executable, *command],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_wheel_contains_only_the_packages(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == set(PACKAGES)
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_wheel_contains_every_module_and_data_file(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    relative = [path.relative_to(ROOT) for path in shipped_files()]
    expected = {
        path.as_posix()
        for path in relative
        if path.parts[0] in PACKAGES and path.suffix in DATA | {".py"}
    }
    assert not expected - names


def test_packages_contain_only_data_types_that_are_shipped() -> None:
    relative = [path.relative_to(ROOT) for path in shipped_files()]
    assert not [
        str(path)
        for path in relative
        if path.parts[0] in PACKAGES and path.suffix not in DATA | {".py"}
    ]


def test_the_command_line_works_outside_the_clone(installed: Path, tmp_path: Path) -> None:
    where = run_outside(installed, tmp_path, "-c", "import pipelines; print(pipelines.__file__)")
    assert where.stdout.startswith(str(installed)), where.stderr
    result = run_outside(installed, tmp_path, installed / "bin" / "ratchet", "--help")
    assert result.returncode == 0, result.stderr
    assert "demo" in result.stdout, result.stderr
    assert not list(tmp_path.iterdir())  # asking for help writes no files


def test_the_profiles_load_outside_the_clone(installed: Path, tmp_path: Path) -> None:
    code = (
        "from resources.config.load import FOLDER, load_profile as load\n"
        "for p in FOLDER.glob('*.yaml'): load(p.stem); print(p.stem)"
    )
    result = run_outside(installed, tmp_path, "-c", code)
    assert result.returncode == 0, result.stderr
    assert {"embedded", "gpu", "cluster"} <= set(result.stdout.split()), result.stderr


def test_dagster_settings_are_written_outside_the_clone(installed: Path, tmp_path: Path) -> None:
    code = (
        "from pathlib import Path; from pipelines.instance import prepare\n"
        "from resources.config.load import load_profile; from resources.home import Home\n"
        "print(prepare(Home(Path('home').absolute()), load_profile('embedded').orchestration))"
    )
    result = run_outside(installed, tmp_path, "-c", code)
    assert result.returncode == 0, result.stderr
    folder = Path(result.stdout.strip())
    assert yaml.safe_load((folder / "dagster.yaml").read_text())["run_launcher"]
    [location] = yaml.safe_load((folder / "workspace.yaml").read_text())["load_from"]
    assert Path(location["python_module"]["working_directory"]) == installed
