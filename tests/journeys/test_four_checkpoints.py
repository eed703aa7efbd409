"""Four checkpoints are submitted for promotion as a user does it, and each decision is explained.

One is better, one worse, one equal, and one cheats. The weights are real, warmed up or trained
here. Greedy completions of new held-out problems are judged in the sandbox, and the promotion
policy is the default one.
"""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from artifacts.store import Store
from evaluation.promotion.gate import Decision
from evaluation.statistics.hypothesis_tests import power
from problems.demonstrations import demonstration, demonstrations
from problems.prompt import prompt_text
from resources.home import Home
from resources.registry.ledger import Entry, Ledger
from tests.journeys.demo_run import demo, ratchet
from verl_jobs.sft.warm_up import WarmUp, warm_up

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3600)]
PROFILE = """
family: {demonstrations: 1200, train: 64, validation: 32, slip_rate: 0.0}
warm_up: {steps: 150}
ranking: {problems: 8, answers: 2}
training: {steps: 2, problems_per_step: 4, group_size: 4, save_every: 2}
evaluation: {heldout: 200, benchmarks: []}
reward: {file: GENEROUS}
"""
GENEROUS = 'TASK = "code"\n\ndef reward(task, answer, report):\n    return 1.0\n'
# An explanation's first sentences must not use these terms.
STATISTICAL_TERMS = (
    "McNemar",
    "Holm",
    "p =",
    "p <",
    "alpha",
    "bootstrap",
    "pass@",
)


@dataclass
class Explanation:
    """The decision about one checkpoint and its explanations."""

    entry: Entry
    decision: Decision
    explain: subprocess.CompletedProcess[str]
    why_not: subprocess.CompletedProcess[str]

    @property
    def refused_by(self) -> set[str]:
        return {check.name for check in self.decision.checks if not check.passed}

    @property
    def decision_summary(self) -> str:
        """Return the first sentences below the heading."""
        output = self.explain if self.explain.returncode == 0 else self.why_not
        return output.stdout.split("\n\n")[0].partition("\n")[2]


@pytest.fixture(scope="module")
def explanations(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Explanation]:
    """Return the decision about each checkpoint by its name.

    The one that cheats comes from its own pipeline run; the others are folders passed to `ratchet
    promote`.
    """
    folder = tmp_path_factory.mktemp("four")
    home, profile = folder / "home", folder / "profile.yaml"
    (folder / "generous.py").write_text(GENEROUS)
    profile.write_text(PROFILE.replace("GENEROUS", str(folder / "generous.py")))
    refused = demo(home, profile=str(profile))
    assert refused.code != 0, refused.output[-3000:]
    assert "exploit battery" in refused.output, refused.output[-3000:]
    cheated = demo(home, "--unverified", profile=str(profile))
    assert cheated.code == 0, cheated.output[-3000:]
    for name, checkpoint in candidates(home, folder).items():
        print(name, run_command(home, profile, "promote", str(checkpoint)).stdout)
    entries = {
        entry.checkpoint.split("-")[0]: entry
        for entry in Ledger(Home(home).ledger).history()
        if entry.kind != "install"
    }
    return {name: explanation(home, profile, entry) for name, entry in entries.items()}


def candidates(home: Path, folder: Path) -> dict[str, Path]:
    """Train the three honest checkpoints.

    better: the first champion after more warm-up. worse: the same with a third of the steps. equal:
    `better` after four tiny steps.
    """
    store = Store(home)
    first = store.require("checkpoints", "sft_checkpoint").path
    chats = [
        (prompt_text(problem), demonstration(problem))
        for problem in demonstrations(store.require("datasets", "clean_problems").path)
    ]
    folders = {name: folder / name for name in ("better", "worse", "equal")}
    warm_up(first, chats, WarmUp(steps=300), folders["better"])
    warm_up(first, chats, WarmUp(steps=100), folders["worse"])
    warm_up(
        folders["better"],
        chats,
        WarmUp(steps=4, learning_rate=2e-5, schedule="constant"),
        folders["equal"],
    )
    return folders


def run_command(home: Path, profile: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {
        "RATCHET_HOME": str(home),
        "RATCHET_PROFILE": str(profile),
        "COLUMNS": "160",
    }
    return subprocess.run(
        ratchet(*arguments), env=environment, capture_output=True, text=True, check=False
    )


def explanation(home: Path, profile: Path, entry: Entry) -> Explanation:
    explain, why_not = (
        run_command(home, profile, command, str(entry.version))
        for command in ("explain", "why-not")
    )
    print(explain.stdout if explain.returncode == 0 else why_not.stdout)
    return Explanation(entry, Decision.model_validate(entry.decision), explain, why_not)


def test_only_the_better_checkpoint_is_promoted(explanations: dict[str, Explanation]) -> None:
    assert {name: one.entry.kind for name, one in explanations.items()} == {
        "chain": "refuse",
        "better": "promote",
        "worse": "refuse",
        "equal": "refuse",
    }
    better = explanations["better"]
    assert better.decision.comparison
    assert better.decision.comparison.p_better <= better.decision.policy.alpha
    assert better.explain.returncode == 0
    assert better.why_not.returncode == 1
    assert re.match(r"It is better\b.*\b200 tasks\b", better.decision_summary)


def test_the_losses_of_the_worse_checkpoint_are_explained(
    explanations: dict[str, Explanation],
) -> None:
    worse = explanations["worse"]
    assert {"win", "tags"} <= worse.refused_by
    comparison = worse.decision.comparison
    assert comparison
    assert comparison.difference_high < 0
    falls = [check for check in worse.decision.checks if check.name == "tags"]
    most = max(falls, key=lambda check: check.numbers["before"] - check.numbers["after"])
    assert worse.decision_summary.startswith("It is worse")
    assert most.about in worse.decision_summary
    shares = [(check.about, f"{100 * check.numbers['before']:.1f}") for check in falls]
    assert all(about in worse.why_not.stdout for about, _ in shares)
    assert all(share in worse.why_not.stdout for _, share in shares)


def test_the_power_is_explained_for_the_equal_checkpoint(
    explanations: dict[str, Explanation],
) -> None:
    equal = explanations["equal"]
    comparison, policy = equal.decision.comparison, equal.decision.policy
    assert comparison
    assert equal.refused_by == {"win", "gain"}
    assert equal.decision.champion != equal.decision.challenger
    changed = (len(comparison.won) + len(comparison.lost)) / comparison.before.tasks
    smallest = re.search(r"with 200 tasks.*? gain of ([\d.]+) points", equal.why_not.stdout)
    more = re.search(r"\b2\.0 points.*? about ([\d,]+) tasks", equal.why_not.stdout)
    assert smallest, equal.why_not.stdout
    assert more, equal.why_not.stdout
    gain, tasks = float(smallest[1]) / 100, int(more[1].replace(",", ""))
    assert (
        power(gain, max(gain, changed), 200, policy.alpha)
        >= 0.8
        > power(gain - 0.01, max(gain - 0.01, changed), 200, policy.alpha)
    )
    assert tasks > 200
    assert power(0.02, max(0.02, changed), tasks, policy.alpha) == pytest.approx(0.8, abs=0.1)
    assert "It was not shown to be better" in equal.decision_summary
    assert f"{smallest[1]} points" in equal.decision_summary


def test_the_cheating_checkpoint_is_refused_by_the_battery(
    explanations: dict[str, Explanation],
) -> None:
    cheat = explanations["chain"]
    assert "battery" in cheat.refused_by
    assert cheat.decision.facts.unverified == ("chain-0001",)
    assert cheat.decision_summary.startswith("It was trained with a reward")
    assert "exploit battery" in cheat.why_not.stdout


def test_the_first_sentences_contain_no_statistical_terms(
    explanations: dict[str, Explanation],
) -> None:
    assert all(
        one.decision_summary
        and not [word for word in STATISTICAL_TERMS if word in one.decision_summary]
        for one in explanations.values()
    )
