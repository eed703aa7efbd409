"""Combine reward components into one score per completion, and record what each one gave."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from artifacts.code_hash import hash_code, parts
from artifacts.hashing import hash_data, hash_file
from problems.schema import Problem
from rewards import lint
from rewards.choices import read_choices
from rewards.components.component import RewardedProgram
from rewards.components.correctness import correctness
from rewards.components.registry import COMPONENTS, file_of
from rewards.config import QUALITY, RewardConfig, Weights
from rewards.extraction import extract_answer, extract_code
from rewards.facts import token_f1
from rewards.judging import Judged, judge
from rewards.preference import Preferences
from rewards.question import RewardTask
from rewards.scalar import constrained, lexicographic, weighted_sum
from rewards.score import Score, hacking_facts
from rewards.security import bounded, security
from rewards.trust import unpaid, without_shared_trust
from sandbox.languages import PYTHON
from sandbox.protocol import Report, Verdict
from sandbox.sandbox import Sandbox

QUESTIONS = Weights()  # for questions: a right answer, marked as the final answer


class Reward:
    """Score completions. The same task, completion and report give the same score.

    `CompositeReward()` is the variant with style, efficiency and security.
    """

    def __init__(self, config: RewardConfig | None = None) -> None:
        self.config = config or RewardConfig()
        self._preferences = (
            Preferences(read_choices(Path(self.config.preferences)))
            if self.config.preferences
            else None
        )

    def by_tag(self) -> dict[str, Reward]:
        """Return the reward of each tag (`config.by`), and under "" that of all other problems."""
        if not (self.config.measured and self.config.by):
            return {"": self}
        return {
            tag: Reward(self.config.model_copy(update={"weights": weights, "by": {}}))
            for tag, weights in self.config.weightings.items()
        }

    def score(self, task: RewardTask, completion: str, report: Report, step: int = 0) -> Score:
        """Score one completion with its report. There is no value where judging failed."""
        return self.score_all([Judged(task, completion, report, step)])[0]

    def score_all(self, batch: Sequence[Judged]) -> list[Score]:
        """Return scores in the order of the batch.

        Unless `config.shared` is on, a verdict with trust `shared` counts as if no test had passed.
        """
        if self.config.shared:
            return self._score_all(batch)
        counted = [without_shared_trust(judged) for judged in batch]
        scores = self._score_all(counted)
        shared = [at for at, judged in enumerate(batch) if counted[at] is not judged]
        for at, in_full in zip(shared, self._score_all([batch[at] for at in shared]), strict=True):
            scores[at] = unpaid(batch[at], scores[at], in_full)
        return scores

    def _score_all(self, batch: Sequence[Judged]) -> list[Score]:
        """Score the reports as they are. The linter runs once, if it is needed."""
        findings = self._findings(batch)
        return [self._score(judged, findings.get(at)) for at, judged in enumerate(batch)]

    def _score(self, judged: Judged, findings: lint.Findings | None) -> Score:
        report = judged.report
        if report.verdict is Verdict.INFRA:
            return Score(None, Verdict.INFRA, total=report.total)
        if self.config.kind == "random":
            coin = _coin(judged.task.problem_id, judged.completion)
            return Score(
                coin,
                report.verdict,
                {"random": coin},
                report.passed,
                report.total,
                {"random": coin},
                **hacking_facts(judged),
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
            value,
            report.verdict,
            values,
            report.passed,
            report.total,
            gave,
            **hacking_facts(judged),
        )

    def _components(
        self, judged: Judged, findings: lint.Findings | None
    ) -> tuple[dict[str, float], dict[str, float]]:
        """Return the measured components, and the weights of those that count here."""
        task, report, dense = judged.task, judged.report, self.config.dense_share(judged.step)
        if isinstance(task, Problem):
            program = RewardedProgram(
                task, judged.completion, report, dense, findings, self._preferences
            )
            weights = self.config.weights_of(task)
            values = {name: COMPONENTS[name].value(program) for name in self.config.measured}
        else:
            weights, values = QUESTIONS, _question(judged, dense)
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
                return constrained(values, weights, self.config.floors)

    def _findings(self, batch: Sequence[Judged]) -> dict[int, lint.Findings | None]:
        """Return linter findings by position, for the programs whose text matters.

        For a component these are the accepted programs, for security all that compile.
        """
        if self.config.kind == "random" or not self.config.linted:
            return {}
        codes = {
            at: extract_code(judged.completion, judged.task.entry_point)
            for at, judged in enumerate(batch)
            if isinstance(judged.task, Problem)
            and judged.task.language == PYTHON
            and self._read(judged.report.verdict)
        }
        return dict(zip(codes, lint.lint(list(codes.values())), strict=True))

    def _read(self, verdict: Verdict) -> bool:
        return verdict is Verdict.AC or (
            self.config.security and verdict not in (Verdict.INFRA, Verdict.CE)
        )


class CompositeReward(Reward):
    """By default 0.7 correctness, 0.2 style, 0.1 efficiency, and security as a constraint."""

    def __init__(self, config: RewardConfig = QUALITY) -> None:
        super().__init__(config)


def score_answers(
    sandbox: Sandbox | None, reward: Reward, pairs: Sequence[tuple[RewardTask, str]]
) -> list[Score]:
    """Judge and score a batch; return scores in the order of the pairs."""
    return reward.score_all(judge(sandbox, pairs))


def reward_hash(config: RewardConfig) -> str:
    """Return a hash that rewards share if they score alike.

    It covers the config, the files that the config names, and the code that reads them: this
    module and the components that the config measures, each with what it imports. A reward file
    may import any component.
    """
    settings = config.model_dump(mode="json", exclude={"file", "preferences", "unverified"})
    settings["weights"] = {
        name: weight for name, weight in settings["weights"].items() if weight > 0
    }
    settings["by"] = [*settings["by"].items()]  # the order decides between two tags of a problem
    files = {
        name: hash_file(Path(path))
        for name in ("file", "preferences")
        if (path := getattr(config, name))
    }
    linter = lint.version() if config.linted else ""
    modules = [Path(__file__), *map(file_of, COMPONENTS if config.file else config.measured)]
    code = {
        path.relative_to(Path(__file__).parent).as_posix(): hash_code(path)
        for module in modules
        for path in parts(module)
    }
    return hash_data({"config": settings, "files": files, "linter": linter, "code": code})


def _question(judged: Judged, dense: float) -> dict[str, float | None]:
    """Return correctness and format of an answer to a question.

    Dense correctness (`qa` only) grows with the words shared with a reference answer. Format says
    whether a final answer can be extracted.
    """
    final_answer = extract_answer(judged.completion)
    right = correctness(judged.report, dense=0.0)
    if (
        right == -1.0
        and dense
        and not isinstance(judged.task, Problem)
        and judged.task.task == "qa"
    ):
        right = -1.0 + dense * min(
            2.0 * token_f1(judged.task.answers, final_answer, judged.task.statement), 1.9
        )
    return {"correctness": right, "format": 1.0 if final_answer else -1.0}


def _coin(problem_id: str, completion: str) -> float:
    digest = hashlib.sha256(f"{problem_id}\0{completion}".encode("utf-8", "surrogatepass")).digest()
    return 1.0 if digest[0] & 1 else -1.0
