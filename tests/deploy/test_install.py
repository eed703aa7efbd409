"""The lock files and the installer.

The lock is complete and names no local path. The installer detects when there is nothing to do. An
unsupported machine gets a one-line message.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from deploy import install
from deploy.lock import GPU_EXTRAS, LockedPackage, direct_requirements, lock_text, merge
from tests.test_architecture import ROOT

ENTRY = re.compile(
    r"^([a-z0-9-]+)==([^\s;]+)(?:; [^\n]+)?((?: \\\n    --hash=sha256:[0-9a-f]{64})+)\n",
    re.MULTILINE,
)
LOCKS = [ROOT / name for name in (*install.LOCKS, install.GPU_LOCK)]


def pins(lock: Path) -> dict[str, str]:
    return {name: version for name, version, _ in ENTRY.findall(lock.read_text(encoding="utf-8"))}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.parametrize("lock", LOCKS, ids=[lock.name for lock in LOCKS])
def test_every_line_of_a_lock_pins_a_package_with_a_hash(lock: Path) -> None:
    assert ENTRY.sub("", lock.read_text(encoding="utf-8")).count("\n") == 1  # the comment above


def test_the_lock_contains_every_dependency() -> None:
    locked = pins(LOCKS[0])
    for requirement in map(Requirement, direct_requirements(ROOT / "pyproject.toml")):
        assert requirement.specifier.contains(locked[normal(requirement.name)]), requirement


def test_the_gpu_lock_contains_every_dependency_and_the_engine() -> None:
    locked = pins(ROOT / install.GPU_LOCK)
    for requirement in map(Requirement, direct_requirements(ROOT / "pyproject.toml", GPU_EXTRAS)):
        assert requirement.specifier.contains(locked[normal(requirement.name)]), requirement
    assert locked["torch"] == pins(LOCKS[0])["torch"]
    assert locked["verl"] == pins(LOCKS[0])["verl"]


def test_every_direct_dependency_has_a_documented_reason() -> None:
    page = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    reasons = dict(re.findall(r"^\| `([^`]+)` \| (.+) \|$", page, re.MULTILINE))
    dependencies = {
        normal(Requirement(line).name)
        for line in direct_requirements(ROOT / "pyproject.toml", GPU_EXTRAS)
    }
    assert {normal(name) for name in reasons} == dependencies
    assert all(len(reason) > 10 for reason in reasons.values())


def test_torch_may_be_the_cpu_build_or_the_registry_s_own() -> None:
    hashes = install.pinned(LOCKS[0], ("torch",)).count("--hash")
    assert hashes == 3  # the registry's for two Pythons, and the +cpu build


def test_the_cuda_lock_is_a_file_of_its_own() -> None:
    cuda = pins(LOCKS[1])
    assert "triton" in cuda
    assert not cuda.keys() & pins(LOCKS[0]).keys()
    assert not [name for name in pins(LOCKS[0]) if name.startswith(("nvidia-c", "cuda-"))]


def test_the_build_tools_are_pinned_too() -> None:
    build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"][
        "requires"
    ]
    assert {Requirement(line).name for line in build} <= set(install.BUILD)
    assert len(ENTRY.findall(install.pinned(LOCKS[0], install.BUILD))) == len(install.BUILD)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Return a folder with all files that the installer reads."""
    for name in (*install.LOCKS, install.GPU_LOCK, "pyproject.toml"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    return tmp_path


@pytest.mark.parametrize("lock", install.LOCKS)
def test_another_lock_needs_another_environment(clone: Path, lock: str) -> None:
    before = install.stamp(clone)
    (clone / lock).write_text("something else", encoding="utf-8")
    after = install.stamp(clone)
    assert after["packages"] != before["packages"]
    assert after["ours"] == before["ours"]


def test_the_environment_with_the_engine_depends_on_its_own_lock_alone(clone: Path) -> None:
    before = install.stamp(clone, gpu=True)
    assert before != install.stamp(clone)
    (clone / install.LOCKS[0]).write_text("something else", encoding="utf-8")
    assert install.stamp(clone, gpu=True) == before
    (clone / install.GPU_LOCK).write_text("something else", encoding="utf-8")
    assert install.stamp(clone, gpu=True)["packages"] != before["packages"]


def test_make_keeps_the_kind_of_an_environment(
    clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stamp = install.stamp(clone, gpu=True)
    (clone / ".venv").mkdir()
    (clone / ".venv" / "stamp.json").write_text(json.dumps(stamp), encoding="utf-8")
    monkeypatch.chdir(clone)
    monkeypatch.setattr("sys.argv", ["install.py"])
    assert install.main() == 0


def test_a_lock_marks_what_only_one_python_needs() -> None:
    packages = {"a": LockedPackage("1", {"x"}, {"3.11"}), "b": LockedPackage("1", {"y"}, {"3.11"})}
    merge(packages, {"a": LockedPackage("1", {"z"}, {"3.12"})})
    assert lock_text(packages).splitlines()[1:] == [
        "a==1 \\",
        "    --hash=sha256:x \\",
        "    --hash=sha256:z",
        'b==1; python_version == "3.11" \\',
        "    --hash=sha256:y",
    ]


def test_two_versions_of_a_package_are_refused() -> None:
    with pytest.raises(ValueError, match="a would be 1 and 2"):
        merge({"a": LockedPackage("1")}, {"a": LockedPackage("2")})


def test_another_command_of_the_project_keeps_the_packages(clone: Path) -> None:
    before, pyproject = install.stamp(clone), clone / "pyproject.toml"
    pyproject.write_text(
        pyproject.read_text(encoding="utf-8").replace("cli.main:main", "cli.main:other"),
        encoding="utf-8",
    )
    after = install.stamp(clone)
    assert after["packages"] == before["packages"]
    assert after["ours"] != before["ours"]


def test_the_images_layer_of_packages_is_that_of_its_whole_installation(clone: Path) -> None:
    whole = install.stamp(clone)
    (clone / "pyproject.toml").unlink()  # copied to the image after the packages
    packages = install.stamp(clone)
    assert packages["packages"] == whole["packages"]
    assert packages["ours"] != whole["ours"]


def test_a_linter_setting_needs_no_installation(clone: Path) -> None:
    before, pyproject = install.stamp(clone), clone / "pyproject.toml"
    pyproject.write_text(
        pyproject.read_text(encoding="utf-8").replace("line-length = 150", "line-length = 100"),
        encoding="utf-8",
    )
    assert install.stamp(clone) == before


def test_an_up_to_date_environment_is_not_changed(
    clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (clone / ".venv").mkdir()
    (clone / ".venv" / "stamp.json").write_text(json.dumps(install.stamp(clone)), encoding="utf-8")
    monkeypatch.chdir(clone)
    monkeypatch.setattr("sys.argv", ["install.py"])
    assert install.main() == 0
    assert [path.name for path in (clone / ".venv").iterdir()] == ["stamp.json"]


@pytest.mark.parametrize("arguments", [["mine"], []])
@pytest.mark.parametrize("file", ["notes.txt", "lib/python3.11/site-packages/flask-3.0.dist-info"])
def test_a_folder_with_other_files_is_not_cleared(
    clone: Path,
    arguments: list[str],
    file: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = clone / (arguments or [".venv"])[0]
    (folder / file).parent.mkdir(parents=True)
    (folder / file).write_text("of the user", encoding="utf-8")
    monkeypatch.chdir(clone)
    monkeypatch.setattr("sys.argv", ["install.py", *arguments])
    assert install.main() == 1
    assert (folder / file).read_text(encoding="utf-8") == "of the user"
    assert str(folder) in capsys.readouterr().err


def test_a_failed_installation_of_ratchet_keeps_packages_and_kind(
    clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second `make` installs Ratchet alone, into the same environment with the engine."""
    stamp = install.stamp(clone, gpu=True)
    python = clone / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    python.chmod(0o755)
    install.write_stamp(clone / ".venv", stamp | {"ours": "of an older commit"})
    monkeypatch.chdir(clone)
    monkeypatch.setattr("sys.argv", ["install.py"])
    assert install.main() == 1
    python.write_text("#!/bin/sh\nexit 0\n", encoding="utf-8")
    assert install.main() == 0
    assert json.loads((clone / ".venv" / install.STAMP).read_text(encoding="utf-8")) == stamp


@pytest.mark.slow
def test_an_environment_of_a_killed_install_is_not_foreign(tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    assert not install.foreign(venv)
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    assert not install.foreign(venv)
    (venv / "lib" / "python3.11" / "site-packages" / "flask").mkdir(parents=True)
    assert install.foreign(venv)
    (venv / install.STAMP).touch()
    assert not install.foreign(venv)


def test_an_unsupported_machine_gets_one_line_with_alternatives(tmp_path: Path) -> None:
    (tmp_path / "uname").write_text(
        '#!/bin/sh\n[ "$1" = -s ] && echo Darwin || echo arm64\n', encoding="utf-8"
    )
    (tmp_path / "uname").chmod(0o755)
    result = platform_says(PATH=f"{tmp_path}:/usr/bin:/bin", PYTHON="python3.11")
    assert result.returncode == 1
    assert result.stderr.count("\n") == 1
    assert "Darwin arm64" in result.stderr
    assert "docker run --platform linux/amd64" in result.stderr
    assert "WSL" in result.stderr


def test_a_machine_without_python_3_11_gets_one_line() -> None:
    result = platform_says(PATH="/usr/bin:/bin", PYTHON="no-such-python")
    assert result.returncode == 1
    assert result.stderr.count("\n") == 1
    assert "Python 3.11" in result.stderr
    assert "no-such-python" in result.stderr


def platform_says(**environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", ROOT / "deploy" / "platform.sh"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
