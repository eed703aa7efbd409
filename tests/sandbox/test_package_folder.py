"""A job's own folder of packages: programs import from it and cannot change it. Values of its types
are judged as the program's process compares them.
"""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.protocol import Job, Report, StdioTest, UnittestTest, Verdict
from sandbox.sandbox import Sandbox, run_all
from tests.sandbox.jobs import QUICK

NUMBER = """class Number:
    def __init__(self, value): self.value = value
    def __eq__(self, other): return self.value == other
    __hash__ = None
"""


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A folder with one package, which every user may read."""
    with tempfile.TemporaryDirectory() as made:
        package = Path(made) / "tiny"
        package.mkdir()
        Path(made).chmod(0o755)
        (package / "__init__.py").write_text("from tiny.number import Number\n")
        (package / "number.py").write_text(NUMBER)
        yield Path(made)


def printed(sandbox: Sandbox, source: str, folder: str, packages: tuple[str, ...] = ()) -> Report:
    """Return the report on a script; AC if it prints "yes"."""
    job = Job("job", source, "stdio", (StdioTest("", "yes"),), limits=QUICK, packages=packages)
    return run_all(sandbox, [Job(**vars(job) | {"package_folder": folder})])[0]


def judged(sandbox: Sandbox, source: str, test: str, folder: Path) -> Report:
    """Return the report on a function f under one test method."""
    text = (
        f"import unittest\nclass Cases(unittest.TestCase):\n    def test_it(self):\n        {test}"
    )
    job = Job("job", source, "unittest", (UnittestTest(text),), "f", limits=QUICK)
    return run_all(sandbox, [Job(**vars(job) | {"package_folder": str(folder)})])[0]


def test_programs_import_from_their_folder_and_from_no_other(level: Sandbox, folder: Path) -> None:
    source = "import tiny\nif tiny.Number(3) == 3: print('yes')"
    verdicts = [
        printed(level, source, given, packages).verdict
        for given, packages in ((str(folder), ("tiny",)), ("", ()), (str(folder), ("tiny",)))
    ]
    assert verdicts == [Verdict.AC, Verdict.RE, Verdict.AC]


CHANGES = """import os, shutil, tiny
here = os.path.dirname(os.path.dirname(tiny.__file__))
file = here + '/tiny/number.py'
def link(): os.symlink('/scratch', here + '/link')
for change in (
    lambda: open(here + '/new.py', 'w'), lambda: open(file, 'a'), lambda: os.truncate(file, 0),
    lambda: os.unlink(file), lambda: os.rename(file, file + '2'), lambda: os.mkdir(here + '/new'),
    lambda: os.chmod(file, 0o777), lambda: os.utime(file), lambda: os.chown(file, -1, -1), link,
    lambda: os.setxattr(file, 'user.a', b'1'), lambda: shutil.rmtree(here + '/tiny'),
    lambda: os.link(file, here + '/link2'), lambda: os.mkfifo(here + '/pipe'),
):
    try:
        change()
    except OSError:
        continue
    print('yes')
    break
"""


def test_no_program_changes_the_folder(level: Sandbox, folder: Path) -> None:
    def state() -> list[tuple[str, int, int]]:
        return [(str(p), p.stat().st_mode, p.stat().st_mtime_ns) for p in folder.rglob("*.py")]

    before = state()
    assert printed(level, CHANGES, str(folder), ("tiny",)).verdict is Verdict.WA
    assert state() == before


def test_a_folder_that_is_not_here_gives_no_verdict(sandbox: Sandbox, tmp_path: Path) -> None:
    report = printed(sandbox, "print('yes')", str(tmp_path / "none"))
    assert (report.verdict, report.unusable) == (Verdict.INFRA, True)
    assert str(tmp_path / "none") in report.absent[0]


def test_a_value_that_cannot_be_sent_may_be_right(sandbox: Sandbox, folder: Path) -> None:
    right, wrong = (
        judged(
            sandbox,
            f"import tiny\ndef f(x): return tiny.Number({value})",
            "self.assertEqual(f(1), 7001)",
            folder,
        ).verdict
        for value in (7001, 7002)
    )
    assert (right, wrong) == (Verdict.AC, Verdict.WA)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("result", "test", "verdict"),
    [
        ("DataFrame({'a': [1, 2]})", "self.assertIn('a', f(1))", Verdict.AC),
        ("DataFrame({'a': [1, 2]})", "self.assertEqual(f(1)['a'].sum(), 3)", Verdict.AC),
        ("DataFrame({'a': [1, 2]})", "self.assertEqual(list(f(1)['a']), [1, 2])", Verdict.AC),
        ("DataFrame({'a': [1, 2]}).dtypes['a']", "self.assertEqual(f(1), 'int64')", Verdict.AC),
        ("Timestamp('2026-11-24')", "self.assertEqual(str(f(1))[:10], '2026-11-24')", Verdict.AC),
        ("Series([3, 3])", "self.assertTrue(all(f(1) == 3))", Verdict.AC),
        ("Series([3, 4])", "self.assertTrue(all(f(1) == 3))", Verdict.WA),
        ("Series([7001]).to_numpy()", "self.assertEqual(f(1), 7001)", Verdict.AC),
        # ambiguous truth
        ("Series([1, 2]).to_numpy()", "self.assertEqual(f(1), [1, 2])", Verdict.RE),
        ("Series([1, 2])", "self.assertTrue(f(1))", Verdict.RE),
        # looks for a label
        ("Series([1, 2])", "self.assertIn(2, f(1))", Verdict.WA),
    ],
)
def test_results_of_pandas_are_judged_as_in_their_own_process(
    result: str, test: str, verdict: Verdict, sandbox: Sandbox
) -> None:
    spec = importlib.util.find_spec("pandas")
    assert spec
    assert spec.origin
    source = f"from pandas import DataFrame, Series, Timestamp\ndef f(x): return {result}"
    assert judged(sandbox, source, test, Path(spec.origin).parents[1]).verdict is verdict
