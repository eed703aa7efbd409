"""Style: what the linter finds, and what cannot be gained by writing more code."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewards.battery.cases import CODE, MEDIAN
from rewards.components.style import style
from rewards.composite import CompositeReward
from rewards.judging import Judged
from rewards.lint import lint
from rewards.text_programs import runs_text
from sandbox.protocol import Report, TestResult, Verdict

REFERENCE = CODE["call"].reference
ACCEPTED = Report("job", Verdict.AC, (TestResult(Verdict.AC),))
REFUSED = Report("job", Verdict.WA, (TestResult(Verdict.WA),))
PADDING = (
    "# a comment\n",
    "\n\n",
    "\n\ndef spare(x):\n    return x\n",
    "\n\nclass Spare:\n    pass\n",
    "TABLE = [" + "1, " * 30 + "]\n",
    '"""Text."""\n',
    "SPARE = 1\n",
    "import os  # noqa: F401\n",
    "if False:\n    x = 1\n",
    '\n\ndef spare(x: int) -> int:\n    """Gives x."""\n    return x\n',
)


def value(program: str, report: Report = ACCEPTED) -> float:
    facts = style(report, lint([program])[0], formed=True)
    assert facts is not None
    return facts


@settings(max_examples=15)
@given(st.lists(st.sampled_from(PADDING), min_size=1, max_size=6))
def test_adding_code_never_raises_the_style(added: list[str]) -> None:
    alone, padded = lint([REFERENCE, REFERENCE + "".join(added)])
    before, after = style(ACCEPTED, alone, formed=True), style(ACCEPTED, padded, formed=True)
    assert before is not None
    assert after is not None
    assert after <= before


def test_clean_code_scores_one_and_each_offence_costs() -> None:
    assert value(REFERENCE) == 1.0
    assert value("import os\n" + REFERENCE) == pytest.approx(0.8)
    assert 0.0 < value("import os, sys\n" * 10 + REFERENCE) < 0.5


@pytest.mark.parametrize(
    "program",
    [
        "exec(CODE)",
        "run = exec\nrun(CODE)",
        "__builtins__['ex' + 'ec'](CODE)",
        "import builtins\n\nbuiltins.exec('x = 1')",
        "from importlib.util import module_from_spec as make\n\nmake(s).loader.exec_module(m)",
        "from runpy import run_path\n\nrun_path('m.py')",
        "f = eval('lambda x: 1 if x else 2')",
        'TEXT = """def f(x):\n    if x:\n        return 1\n    return 2\n"""',
    ],
)
def test_a_program_in_a_text_has_no_style(program: str) -> None:
    assert runs_text(program)
    assert value(f"{program}\n\n\n{REFERENCE}") == 0.0


@pytest.mark.parametrize(
    "program",
    [
        "def f(text):\n    return eval(text)",
        "import re\n\nWORD = re.compile('a')",
        "def f():\n    return 'def g(): return 1'",
        'HTML = """<p>\n  if x: return\n</p>\n"""',
        'def f(x):\n    """Return x.\n\n    if x:\n        pass\n    """\n    return x',
        "def compile(x):\n    return x\n\n\ny = compile(1)",
        'TEXT = """one, two\nthree\nfour"""',
    ],
)
def test_a_text_that_nothing_runs_costs_no_style(program: str) -> None:
    assert not runs_text(program)


@pytest.mark.parametrize(
    "hush",
    [
        "# ruff: noqa\n",
        "# flake8: noqa\n",
        "# ruff: disable[F401, E401]\n",
        "# fmt: off\n# pylint: disable=all\n",
    ],
)
def test_a_program_cannot_silence_the_linter(hush: str) -> None:
    offending = "import os, sys  # noqa\n" + REFERENCE
    assert value(hush + offending) <= value(offending) < 1.0


def test_style_does_not_replace_a_solution() -> None:
    assert value("def median(xs):\n    return 0\n", REFUSED) < value(
        "import os, sys\n" * 50 + REFERENCE, ACCEPTED
    )


def test_complex_branching_lowers_the_style() -> None:
    tangle = (
        "def median(x):\n"
        + "".join(f"    if x == {i}:\n        print({i})\n" for i in range(30))
        + "    return x\n"
    )
    assert value(tangle) < 0.25


def test_a_program_that_crashes_the_linter_affects_no_other() -> None:
    deep = "x = y" + ".a" * 49_000 + "\n"
    [good, broken, clean] = lint(["import os\n", deep, REFERENCE])
    assert good is not None
    assert good.offences == 1
    assert broken is None
    assert clean is not None
    assert clean.offences == 0


def test_a_batch_scores_like_single_programs() -> None:
    batch = [
        Judged(MEDIAN, text, report)
        for text in (REFERENCE, "import os\n" + REFERENCE, "eval('1')")
        for report in (ACCEPTED, REFUSED)
    ]
    reward = CompositeReward()
    assert reward.score_all(batch) == [
        reward.score(one.task, one.completion, one.report) for one in batch
    ]
