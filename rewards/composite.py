"""The reward as a whole: components of judged answers, combined into one value each, with a trace of which component gave what."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from artifacts.hashing import hash_data, hash_file
from artifacts.sources import hash_code, parts
from problems.schema import Problem
from rewards import lint
from rewards.config import QUALITY, RewardConfig, Weights
from rewards.correctness import correctness
from rewards.efficiency import efficiency
from rewards.extraction import extract_answer, extract_code
from rewards.facts import token_f1
from rewards.format import well_formed
from rewards.judging import Judged, judge
from rewards.preference import Preferences, read_choices
from rewards.question import Task
from rewards.scalar import constrained, lexicographic, weighted_sum
from rewards.score import Score, seen
from rewards.security import bounded, security
from rewards.style import style
from rewards.trust import unpaid, without_shared_trust
from sandbox.protocol import Report, Verdict
from sandbox.sandbox import Sandbox

QUESTIONS = Weights()  # what a statement is paid for: it is right, and says where its answer is


class Reward:
    """Pure: the same task, answer and report give the same score. `CompositeReward()` is the one with style, efficiency and security."""

    def __init__(self, config: RewardConfig | None = None) -> None:
        self.config = config or RewardConfig()
        self._preferences = (
            Preferences(read_choices(Path(self.config.preferences)))
            if self.config.preferences
            else None
        )

    def score(self, task: Task, answer: str, report: Report, step: int = 0) -> Score:
        """The worth of an answer that got this report. No value where the judge failed."""
        return self.score_all([Judged(task, answer, report, step)])[0]

    def score_all(self, batch: Sequence[Judged]) -> list[Score]:
        """Scores in the order of the batch. Unless the config pays for them, verdicts with trust `shared` count as no test passed."""
        if self.config.shared:
            return self._score_all(batch)
        counted = [without_shared_trust(judged) for judged in batch]
        scores = self._score_all(counted)
        shared = [at for at, judged in enumerate(batch) if counted[at] is not judged]
        for at, in_full in zip(shared, self._score_all([batch[at] for at in shared]), strict=True):
            scores[at] = unpaid(batch[at], scores[at], in_full)
        return scores

    def _score_all(self, batch: Sequence[Judged]) -> list[Score]:
        """Scores of the reports as they are; the linter, where it is needed, runs once."""
        findings = self._findings(batch)
        return [self._score(judged, findings.get(at)) for at, judged in enumerate(batch)]

    def _score(self, judged: Judged, findings: lint.Findings | None) -> Score:
        report = judged.report
        if report.verdict is Verdict.INFRA:
            return Score(None, Verdict.INFRA, total=report.total)
        if self.config.kind == "random":
            coin = _coin(judged.task.problem_id, judged.answer)
            return Score(
                coin,
                report.verdict,
                {"random": coin},
                report.passed,
                report.total,
                {"random": coin},
                **seen(judged),
            )
        values, weights = self._components(judged, findings)
        value = self._combined(values, weights)
        gave = {
            name: values[name] * weight / sum(weights.values()) for name, weight in weights.items()
        }
        if self.config.combine != "sum":
            gave["combine"] = value - sum(gave.values())
        if self.config.security and isinstance(judged.task, Problem):
            values["security"] = security(report, findings, judged.task) or 0.0
            left = bounded(value, values["security"])
            gave["security"], value = left - value, left
        return Score(
            value, report.verdict, values, report.passed, report.total, gave, **seen(judged)
        )

    def _components(
        self, judged: Judged, findings: lint.Findings | None
    ) -> tuple[dict[str, float], dict[str, float]]:
        """Values and weights of the components that count here: those with a weight that could be measured."""
        task, report, dense = judged.task, judged.report, self.config.dense_share(judged.step)
        if not isinstance(task, Problem):
            weights, values = QUESTIONS, _question(judged, dense)
        else:
            weights, formed = (
                self.config.weights,
                well_formed(task, extract_code(judged.answer), report),
            )
            values = {
                "correctness": correctness(report, dense=dense, visible=task.visible_tests),
                "format": formed,
                "style": style(report, findings, formed=formed == 1.0) if weights.style else None,
                "efficiency": efficiency(task, report) if weights.efficiency else None,
                "preference": self._preferences.value(task.problem_id, judged.answer)
                if self._preferences
                else None,
            }
        counted = {
            name: weight
            for name, weight in weights.model_dump().items()
            if weight > 0 and values.get(name) is not None
        }
        return {name: value for name, value in values.items() if value is not None}, counted

    def _combined(self, values: Mapping[str, float], weights: Mapping[str, float]) -> float:
        match self.config.combine:
            case "sum":
                return weighted_sum(values, weights)
            case "lexicographic":
                return lexicographic(values, weights)
            case "constraint":
                return constrained(
                    values,
                    weights,
                    {str(name): floor for name, floor in self.config.floors.items()},
                )

    def _findings(self, batch: Sequence[Judged]) -> dict[int, lint.Findings | None]:
        """By position, of the programs whose text matters: accepted ones for style, all that compile for security."""
        if self.config.kind == "random" or not (self.config.security or self.config.weights.style):
            return {}
        wanted = [
            at
            for at, judged in enumerate(batch)
            if isinstance(judged.task, Problem) and self._read(judged.report.verdict)
        ]
        return dict(
            zip(wanted, lint.lint([extract_code(batch[at].answer) for at in wanted]), strict=True)
        )

    def _read(self, verdict: Verdict) -> bool:
        return verdict is Verdict.AC or (
            self.config.security and verdict not in (Verdict.INFRA, Verdict.CE)
        )


class CompositeReward(Reward):
    """0.7 correctness, 0.2 style, 0.1 efficiency, and security as a constraint, unless told otherwise."""

    def __init__(self, config: RewardConfig = QUALITY) -> None:
        super().__init__(config)


def score_answers(
    sandbox: Sandbox | None, reward: Reward, pairs: Sequence[tuple[Task, str]], step: int = 0
) -> list[Score]:
    """Judges and scores a batch; scores in the order of the pairs."""
    return reward.score_all(judge(sandbox, pairs, step))


def reward_hash(config: RewardConfig) -> str:
    """What two rewards that pay the same have in common: their config, the files it names, and the code that reads them."""
    told = config.model_dump(mode="json", exclude={"file", "preferences", "unverified"})
    files = {
        name: hash_file(Path(path))
        for name in ("file", "preferences")
        if (path := getattr(config, name))
    }
    linter = lint.version() if config.weights.style or config.security else ""
    code = {path.name: hash_code(path) for path in parts(Path(__file__))}
    return hash_data({"config": told, "files": files, "linter": linter, "code": code})


def _question(judged: Judged, dense: float) -> dict[str, float | None]:
    """Of a statement: right or not, dense by the words it shares with a right one; and whether it says where its answer is."""
    given = extract_answer(judged.answer)
    right = correctness(judged.report, dense=0.0)
    if (
        right == -1.0
        and dense
        and not isinstance(judged.task, Problem)
        and judged.task.task == "qa"
    ):
        right = -1.0 + dense * min(
            2.0 * token_f1(judged.task.answers, given, judged.task.statement), 1.9
        )
    return {"correctness": right, "format": 1.0 if given else -1.0}


def _coin(problem_id: str, answer: str) -> float:
    digest = hashlib.sha256(f"{problem_id}\0{answer}".encode("utf-8", "surrogatepass")).digest()
    return 1.0 if digest[0] & 1 else -1.0


__all__ = ["CompositeReward", "Reward", "RewardConfig", "Weights", "reward_hash", "score_answers"]
