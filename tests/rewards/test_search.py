"""The search finds what a reward file pays for besides solving the task, and accepts sound ones."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from rewards.battery.attempts import BOUND, BatteryRow
from rewards.battery.constructs import STATEMENTS
from rewards.battery.mutations import of_costs, of_programs, of_text
from rewards.battery.patterns import example
from rewards.battery.search import JudgedPrograms, judge_known_programs, search
from rewards.battery.search_problems import search_problems
from rewards.composite import CompositeReward, Reward
from rewards.config import RewardConfig
from rewards.judging import judge
from rewards.own import OwnReward
from sandbox.protocol import Verdict
from sandbox.sandbox import Sandbox
from tests.rewards.reward_files import EXPLOITABLE, SOUND, write

SLOW = (
    "visible_only",
    "phrase_inline",
    "asserts",
    "shared_trust",
    "phrase_behind_phrase",
    "visible_tests_as_asserts",
    "steep_partial_credit",
    "slow_solutions",
)


def rows(names: Iterable[str], slow: Sequence[str]) -> list[Any]:
    """Return the names as parameters: some are slow tests, and the rest soaks."""
    return [
        pytest.param(name, marks=pytest.mark.slow if name in slow else pytest.mark.soak)
        for name in names
    ]


@pytest.fixture(scope="module")
def known(sandbox: Sandbox) -> list[JudgedPrograms]:
    return judge_known_programs(sandbox, "code")


@pytest.mark.parametrize("name", rows(EXPLOITABLE, SLOW))
def test_the_search_finds_an_exploit_of_an_exploitable_reward(
    sandbox: Sandbox, known: list[JudgedPrograms], tmp_path: Path, name: str
) -> None:
    finding = next(
        (
            one
            for one in search(
                OwnReward(write(name, EXPLOITABLE[name], tmp_path)), sandbox, known=known
            )
            if not one.passed
        ),
        None,
    )
    assert finding
    assert "wrong completion" in finding.exploit
    assert "solution 1" in finding.exploit


@pytest.mark.parametrize(
    "name", rows(SOUND, ["binary", "hidden_share_and_format", "punished_for_excess"])
)
def test_a_sound_reward_is_accepted(
    sandbox: Sandbox, known: list[JudgedPrograms], tmp_path: Path, name: str
) -> None:
    assert not [
        one
        for one in search(OwnReward(write(name, SOUND[name], tmp_path)), sandbox, known=known)
        if not one.passed
    ]


SHIPPED = {
    "quality": CompositeReward(),
    "scheduled": Reward(RewardConfig(schedule=((0, 0.0), (10, 1.0), (20, 0.5)))),
    "lexicographic": Reward(RewardConfig(combine="lexicographic", sparse=False)),
    "floors": Reward(RewardConfig(combine="constraint", floors={"correctness": 1.0})),
    "shared": Reward(RewardConfig(shared=True)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SHIPPED)
def test_the_search_accepts_every_shipped_reward_setting(
    sandbox: Sandbox, known: list[JudgedPrograms], name: str
) -> None:
    """On one problem: another file of tests runs the whole battery on some of them."""
    assert not [one for one in search(SHIPPED[name], sandbox, known=known[:1]) if not one.passed]


@pytest.mark.slow
def test_the_search_is_reproducible(
    sandbox: Sandbox, known: list[JudgedPrograms], tmp_path: Path
) -> None:
    reward = OwnReward(write("binary", SOUND["binary"], tmp_path))
    runs: list[list[BatteryRow]] = [
        list(search(reward, sandbox, seed=seed, known=known[:1])) for seed in (5, 5)
    ]
    assert runs[0] == runs[1]


@pytest.mark.slow
def test_the_reported_exploit_gets_the_stated_reward(
    sandbox: Sandbox, known: list[JudgedPrograms], tmp_path: Path
) -> None:
    """The program in the report, when scored, gets the reward that the report states."""
    reward = OwnReward(write("asserts", EXPLOITABLE["asserts"], tmp_path))
    finding = next(one for one in search(reward, sandbox, known=known) if not one.passed)
    ground = search_problems("code")[0]
    paid, plain = reward.score_all(
        judge(
            sandbox,
            [
                (ground.task, finding.exploit.split("\n\n", 1)[1]),
                (ground.task, ground.wrong[0].text),
            ],
        )
    )
    assert paid.verdict is not Verdict.AC
    assert (paid.value or 0) > (plain.value or 0) + BOUND


def test_known_programs_have_the_expected_verdicts(known: list[JudgedPrograms]) -> None:
    for ground, reports in known:
        right, wrong = reports[: len(ground.right)], reports[len(ground.right) :]
        assert all(report.verdict is Verdict.AC for report in right)
        assert not any(
            report.tests[at].verdict is Verdict.AC for report in wrong for at in ground.hidden
        )


@pytest.mark.slow
def test_a_mutation_does_not_change_the_verdict(sandbox: Sandbox) -> None:
    """The predicted report holds: mutated solutions stay solutions."""
    ground = search_problems("code")[0]
    mutations = [*of_text(), *of_programs(), *of_costs()]
    drafts = [one.change(ground.right[0]) for one in mutations]
    judged = judge(sandbox, [(ground.task, draft.text) for draft in drafts])
    assert not [
        one.name
        for one, known in zip(mutations, judged, strict=True)
        if known.report.verdict is not Verdict.AC
    ]


def test_a_table_passes_exactly_the_tests_that_it_knows(sandbox: Sandbox) -> None:
    for ground in search_problems("code"):
        half = frozenset(range(0, len(ground.pairs), 2))
        [table] = judge(sandbox, [(ground.task, ground.table(half).text)])
        passed = [test.verdict is Verdict.AC for test in table.report.tests]
        assert {at for at, right in enumerate(passed) if right} == half


ABSTRACT = {
    "expr",
    "stmt",
    "Index",
    "ExtSlice",
    "AugLoad",
    "AugStore",
    "Param",
    "Suite",
    "Num",
    "Str",
    "Bytes",
    "NameConstant",
    "Ellipsis",
    "_ast_Ellipsis",  # its name in 3.12
}


def test_the_search_covers_the_whole_grammar() -> None:
    kinds = {
        name
        for name, kind in vars(ast).items()
        if isinstance(kind, type) and issubclass(kind, ast.expr | ast.stmt)
    } - ABSTRACT
    there = {
        type(node).__name__
        for source in STATEMENTS.values()
        for node in ast.walk(ast.parse(source.format(n=1)))
    }
    assert not kinds - there


@pytest.mark.parametrize(
    "pattern",
    [
        r"a\d{3}",
        r"(x|y)z+",
        r"[^a-z]q?",
        r"\bword\b\s\S",
        r"(?i)grade: [A-F]",
        r"(\w)\1",
        "^end$",
        r"a{2,}?b*",
    ],
)
def test_an_example_of_a_pattern_matches_it(pattern: str) -> None:
    assert re.search(pattern, example(pattern) or "")
