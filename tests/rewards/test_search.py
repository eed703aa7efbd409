"""The search finds what a reward file pays for besides solving the task, and accepts sound ones."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from rich.console import Console

from cli.reward import verify
from resources.settings import Settings
from rewards.battery.attempts import BOUND
from rewards.battery.constructs import STATEMENTS
from rewards.battery.mutations import Draft, of_costs, of_programs, of_text
from rewards.battery.patterns import example
from rewards.battery.search import FoundExploit, JudgedPrograms, judge_known_programs, search
from rewards.battery.search_problems import search_problems
from rewards.composite import CompositeReward, Reward, RewardConfig
from rewards.config import QUALITY
from rewards.judging import judge
from rewards.own import OwnReward
from sandbox.protocol import Verdict
from sandbox.sandbox import Sandbox
from tests.rewards.reward_files import EXPLOITABLE, SOUND, write

QUICK = (
    "length",
    "comments",
    "asserts",
    "visible_only",
    "phrase",
    "quick_though_wrong",
    "shared_trust",
    "phrase_inline",
)


@pytest.fixture(scope="module")
def known(sandbox: Sandbox) -> list[JudgedPrograms]:
    return judge_known_programs(sandbox, "code")


@pytest.mark.parametrize(
    "name",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in EXPLOITABLE],
)
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
    assert finding and "wrong completion" in finding.exploit and "solution 1" in finding.exploit


@pytest.mark.parametrize(
    "name",
    [name if name == "binary" else pytest.param(name, marks=pytest.mark.slow) for name in SOUND],
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
    "dense": Reward(RewardConfig(sparse=False)),
    "scheduled": Reward(RewardConfig(schedule=((0, 0.0), (10, 1.0), (20, 0.5)))),
    "lexicographic": CompositeReward(
        QUALITY.model_copy(update={"combine": "lexicographic", "sparse": False})
    ),
    "floors": Reward(RewardConfig(combine="constraint", floors={"correctness": 1.0})),
    "shared": Reward(RewardConfig(shared=True)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SHIPPED)
def test_the_search_accepts_every_shipped_reward_setting(
    sandbox: Sandbox, known: list[JudgedPrograms], name: str
) -> None:
    assert not [one for one in search(SHIPPED[name], sandbox, known=known) if not one.passed]


@pytest.mark.slow
def test_the_search_is_reproducible(
    sandbox: Sandbox, known: list[JudgedPrograms], tmp_path: Path
) -> None:
    reward = OwnReward(write("binary", SOUND["binary"], tmp_path))
    runs: list[list[FoundExploit]] = [
        list(search(reward, sandbox, seed=seed, known=known)) for seed in (5, 5)
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
    assert paid.verdict is not Verdict.AC and (paid.value or 0) > (plain.value or 0) + BOUND


@pytest.mark.slow
def test_the_command_prints_the_exploit(tmp_path: Path) -> None:
    console = Console(record=True, width=200)
    assert verify(write("phrase", EXPLOITABLE["phrase"], tmp_path), Settings.read(), console) == 1
    assert (
        "exploit: search, " in (text := console.export_text()) and "i am confident" in text.lower()
    )


def test_known_programs_have_the_expected_verdicts(known: list[JudgedPrograms]) -> None:
    for ground, reports in known:
        right, wrong = reports[: len(ground.right)], reports[len(ground.right) :]
        assert all(report.verdict is Verdict.AC for report in right)
        assert not any(
            report.tests[at].verdict is Verdict.AC for report in wrong for at in ground.hidden
        )


@pytest.mark.slow
def test_a_mutation_does_not_change_the_verdict(sandbox: Sandbox) -> None:
    """The predicted reports hold.

    Mutated solutions stay solutions, and a lookup table passes exactly the tests that it knows.
    """
    for ground in search_problems("code"):
        drafts: list[tuple[str, Draft]] = []
        for one in (*of_text(), *of_programs(), *of_costs()):
            drafts.append((one.name, one.change(ground.right[0])))
        judged = judge(sandbox, [(ground.task, draft.text) for _, draft in drafts])
        assert not [
            name
            for (name, _), known in zip(drafts, judged, strict=True)
            if known.report.verdict is not Verdict.AC
        ]
        half = frozenset(list(range(len(ground.pairs)))[::2])
        [table] = judge(sandbox, [(ground.task, ground.table(half).text)])
        assert {
            at for at, test in enumerate(table.report.tests) if test.verdict is Verdict.AC
        } == half


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
    import re

    assert re.search(pattern, example(pattern) or "")
