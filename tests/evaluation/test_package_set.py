"""The packages of a benchmark: installed by hash into the home, and used by its harness."""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
import zipfile
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from evaluation.benchmarks import Benchmark, NotMeasured, from_problems
from evaluation.benchmarks.package_set import PackageSet, size_of
from evaluation.completions import Completion
from evaluation.judging.bigcodebench import CodeHarness, task
from evaluation.judging.judge import Verdicts, judge
from evaluation.sampling import Sampling
from sandbox.sandbox import Sandbox
from tests.problems.test_bigcodebench import ROW


def wheel(folder: Path) -> Path:
    """Write a wheel of the package `tiny` 1.0 with one module."""
    path, about = folder / "tiny-1.0-py3-none-any.whl", "tiny-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("tiny/__init__.py", "VALUE = 2\n")
        archive.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: any\n")
        archive.writestr(f"{about}/RECORD", "")
    return path


@pytest.fixture
def pinned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], PackageSet]:
    """Return a function: hash of the wheel -> a set of packages with that pin."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))

    def packages(digest: str) -> PackageSet:
        pins = tmp_path / "pins.txt"
        pins.write_text(f"tiny==1.0 \\\n    --hash=sha256:{digest}\n")
        return PackageSet("some", pins)

    return packages


@pytest.mark.slow
def test_packages_are_installed_once_and_by_their_hash(
    pinned: Callable[[str], PackageSet], tmp_path: Path
) -> None:
    path = wheel(tmp_path)
    wrong = pinned("0" * 64)
    with pytest.raises(subprocess.CalledProcessError):
        wrong.install(tmp_path / "home")
    assert wrong.installed(tmp_path / "home") is None
    packages = pinned(hashlib.sha256(path.read_bytes()).hexdigest())
    folder = packages.install(tmp_path / "home")
    assert packages.installed(tmp_path / "home") == folder
    assert packages.versions == {"tiny": "1.0"}
    assert (folder / "tiny" / "__init__.py").stat().st_mode & 0o777 == 0o644
    assert size_of(folder) > 0
    path.unlink()
    assert packages.install(tmp_path / "home") == folder


def test_a_task_is_measured_where_its_package_is_installed(sandbox: Sandbox) -> None:
    row = ROW | {"libs": "['tiny']", "test": f"import tiny\n{ROW['test']}"}
    known = task(row, "row 1")
    harness = CodeHarness("b", "1", "", {known.task_id: known}, "", "bigcodebench")
    assert "tiny" in harness.absent(known)
    assert "benchmarks install b" in harness.absent(known)
    completions = [
        # upstream's module defines os and sys
        Completion(known.task_id, at, f"import tiny\ndef task_func(x): return {text}", True)
        for at, text in enumerate(("tiny.VALUE * x", "len(sys.path) * 0 - len(os.sep)"))
    ]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        (Path(folder) / "tiny.py").write_text("VALUE = 2\n")
        harness = replace(harness, package_folder=Path(folder))
        assert harness.absent(known) == ""
        judged = judge(harness, completions, lambda: nullcontext(sandbox), Verdicts(None))
    assert [each.verdict for each in judged] == ["AC", "WA"]


@pytest.mark.parametrize("lacking", [1, 2])
def test_a_benchmark_leaves_out_few_tasks_that_lack_packages(lacking: int) -> None:
    rows = [
        ROW | {"task_id": f"BigCodeBench/{number}", "libs": f"['{'json' if free else 'tiny'}']"}
        for number in range(12)
        for free in [number >= lacking]
    ]
    tasks = {each.task_id: each for each in (task(row, "row") for row in rows)}
    benchmark = from_problems(
        "b",
        [each.problem for each in tasks.values()],
        Sampling(),
        upstream="BigCodeBench/{}",
        harness=CodeHarness("b", "1", "", tasks, "", "bigcodebench"),
    )
    rest = benchmark.measurable()
    if lacking == 2:
        assert isinstance(rest, NotMeasured)
        assert "2 of 12" in rest.reason
        assert "tiny" in rest.reason
    else:
        assert isinstance(rest, Benchmark)
        assert len(rest.problems) == 11
        assert rest.version != benchmark.version
        assert "1 of 12" in rest.conventions
