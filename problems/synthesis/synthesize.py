"""Synthesize problems: a model proposes and solves them, and agreement gives tests.

The model solves each problem several times without seeing its own proposed solution.

After OSS-Instruct (Wei et al. 2024, arXiv:2312.02120): a snippet of code inspires a problem; and
self-consistency (Wang et al. 2023, arXiv:2203.11171): independent solutions that agree are probably
right. They can still be wrong: if all programs misread the statement in the same way, the tests are
wrong too.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any

from artifacts.hashing import hash_text
from problems.encoding import dumps
from problems.funnel import Removed, Stage
from problems.schema import Problem
from problems.syntax import normal_form
from problems.synthesis.proposals import (
    MIN_INPUTS,
    PROPOSE,
    SOLVE,
    Proposal,
    program_of,
    proposal_of,
)
from problems.synthesis.replies import NoReply, ReplySource
from problems.synthesis.settings import SOURCE, Synthesis
from problems.verification.outputs import Output, OutputRequest, outputs
from sandbox.protocol import Limits
from sandbox.sandbox import Runs

AT_ONCE = 4  # concurrent requests; also proposals between two checks of the budget
LIMITS = Limits.of_work(2.0)
MIN_OUTPUTS = 2


@dataclass(frozen=True)
class Synthesized:
    """The result of synthesis. Every proposal is in `problems` or in `refused`."""

    problems: list[Problem]
    refused: list[Removed] = field(default_factory=list)
    questions: int = 0
    tokens: int = 0

    @property
    def stage(self) -> Stage:
        return Stage.counted("synthetic", len(self.problems), self.refused)


def seeds(problems: Sequence[Problem]) -> list[Problem]:
    """Return problems whose solutions may inspire others.

    These are training problems with solutions, not gated and not derived from others. A generator's
    compositions are used only if there are no others.
    """
    fit = sorted(
        (
            p
            for p in problems
            if p.split == "train" and not p.gated and not p.parents and p.solutions
        ),
        key=lambda p: p.problem_id,
    )
    return [problem for problem in fit if "composition" not in problem.extra] or fit


def synthesize(
    problems: Sequence[Problem],
    config: Synthesis,
    seed: int,
    replies: ReplySource,
    sandbox: Runs,
    on_progress: Callable[[int, int], None] | None = None,
) -> Synthesized:
    """Propose problems until enough were made or the budget is spent.

    The same replies give the same problems. Raises EndpointDown if the endpoint cannot be used,
    problems.verification.outputs.NoOutput if the sandbox failed.
    """
    pool, rng = seeds(problems), random.Random(f"{seed}/synthesis")
    problems_by_id: dict[str, Problem] = {}
    refused: list[Removed] = []
    budget = _Budget(config, replies)
    at = 0
    with ThreadPoolExecutor(AT_ONCE) as threads:
        while pool and len(problems_by_id) < config.problems and budget.left():
            batch = [
                (f"proposal/{at + nth}", rng.choice(pool), rng.getrandbits(31))
                for nth in range(AT_ONCE)
            ]
            at += AT_ONCE
            results = list(
                threads.map(
                    lambda proposal: _propose(proposal[1], proposal[2], config, budget), batch
                )
            )
            proposals = [
                (name, parent, proposal)
                for (name, parent, _), proposal in zip(batch, results, strict=True)
                if not isinstance(proposal, Removed)
            ]
            refused += [
                replace(proposal, problem_id=name)
                for (name, _, _), proposal in zip(batch, results, strict=True)
                if isinstance(proposal, Removed)
            ]
            solver_requests = [
                (proposal, number)
                for _, _, proposal in proposals
                for number in range(config.answers)
            ]
            solver_programs = list(
                threads.map(lambda pair: _solve(pair[0], pair[1], config, budget), solver_requests)
            )
            for (name, *_), problem in zip(
                proposals, _decided_all(proposals, solver_programs, config, sandbox), strict=True
            ):
                if isinstance(problem, Removed):
                    refused.append(replace(problem, problem_id=name))
                elif problem.problem_id in problems_by_id:
                    refused.append(Removed(name, "proposed before", problem.problem_id))
                else:
                    problems_by_id[problem.problem_id] = problem
            if on_progress:
                on_progress(min(len(problems_by_id), config.problems), config.problems)
    return Synthesized(
        [problems_by_id[key] for key in sorted(problems_by_id)],
        refused,
        budget.questions,
        budget.tokens,
    )


class _Budget:
    """Counts the requests and tokens of this pass.

    Replies from the journal count too, so that a resumed pass ends where it would have ended.
    """

    def __init__(self, config: Synthesis, replies: ReplySource) -> None:
        self.config, self.replies = config, replies
        self.questions = self.tokens = 0
        self._lock = Lock()

    def left(self) -> bool:
        return self.questions < self.config.requests and self.tokens < self.config.tokens

    def ask(self, model: str, text: str, seed: int) -> str:
        config = self.config
        body = {
            "messages": [{"role": "user", "content": text}],
            "temperature": config.temperature,
            "max_tokens": config.max_tokens,
            "seed": seed,
        }
        with self._lock:
            self.questions += 1
        reply = self.replies.ask({"model": model, **body})
        with self._lock:
            self.tokens += reply.tokens
        return reply.text


def _propose(parent: Problem, seed: int, config: Synthesis, budget: _Budget) -> Proposal | Removed:
    snippet = parent.solutions[seed % len(parent.solutions)].strip()
    try:
        text = budget.ask(config.model, PROPOSE.format(snippet=snippet, inputs=MIN_INPUTS), seed)
    except NoReply as error:
        return Removed("", "the endpoint gave no answer", str(error))
    proposal = proposal_of(text)
    return (
        proposal
        if isinstance(proposal, Proposal)
        else Removed("", proposal, " ".join(text.split())[:200])
    )


def _solve(proposal: Proposal, number: int, config: Synthesis, budget: _Budget) -> str | None:
    """Return a program, or None if the reply has none.

    The request contains the statement only, not the proposer's own solution.
    """
    text = SOLVE.format(statement=proposal.statement, entry=proposal.entry_point)
    try:
        return program_of(
            budget.ask(config.solver or config.model, text, number), proposal.entry_point
        )
    except NoReply:
        return None


def _decided_all(
    proposals: Sequence[tuple[str, Problem, Proposal]],
    solver_programs: Sequence[str | None],
    config: Synthesis,
    sandbox: Runs,
) -> Iterator[Problem | Removed]:
    """Yield the result for each proposal. All programs run in one pass."""
    programs = [
        [
            proposal.solution,
            *(p for p in solver_programs[at * config.answers : (at + 1) * config.answers] if p),
        ]
        for at, (_, _, proposal) in enumerate(proposals)
    ]
    callable_problems = [
        _problem(parent, proposal, (), (), config, "") for _, parent, proposal in proposals
    ]
    requests = [
        OutputRequest(problem, source, proposal.inputs)
        for problem, (_, _, proposal), sources in zip(
            callable_problems, proposals, programs, strict=True
        )
        for source in sources
    ]
    program_outputs = iter(outputs(requests, sandbox) if requests else [])
    for (_, parent, proposal), sources in zip(proposals, programs, strict=True):
        yield _decided(parent, proposal, sources, [next(program_outputs) for _ in sources], config)


def _decided(
    parent: Problem,
    proposal: Proposal,
    sources: Sequence[str],
    rows: Sequence[Sequence[Output]],
    config: Synthesis,
) -> Problem | Removed:
    """Build the problem from the largest group of programs that agree on every input.

    sources: the proposer's program, then the solver's programs. At least one of the solver's
    programs must be in the group.
    """
    if len(sources) == 1:
        return Removed("", "no answer defines the function")
    vectors = [tuple("" if output.fault else output.same for output in row) for row in rows]
    count, vector = max(
        ((n, v) for v, n in Counter(vectors[1:]).items()),
        key=lambda pair: (pair[0] + (pair[1] == vectors[0]), pair[1] == vectors[0]),
    )
    agree = [source for source, own in zip(sources, vectors, strict=True) if own == vector]
    row = rows[vectors.index(vector)]
    if not any(vector):
        return Removed(
            "", "its programs fail on every input", next(output.fault for output in row)[:200]
        )
    if len(agree) < 2:
        return Removed("", "no two programs agree", f"{len(sources)} programs")
    tests = [
        {**test_input, "expected": output.value}
        for test_input, output in zip(proposal.inputs, row, strict=True)
        if not output.fault
    ]
    if len(tests) < MIN_INPUTS:
        return Removed("", "its programs fail on nearly all inputs", f"{len(tests)} tests")
    if len(set(vector)) < MIN_OUTPUTS:
        return Removed("", "the same comes out whatever goes in")
    solutions = tuple({normal_form(source): source for source in agree}.values())
    return _problem(
        parent,
        proposal,
        tests,
        solutions,
        config,
        f"{len(agree)} of {len(sources)} programs, {count} of them the solver's",
    )


def _problem(
    parent: Problem,
    proposal: Proposal,
    tests: Sequence[dict[str, Any]],
    solutions: Sequence[str],
    config: Synthesis,
    outputs_by: str,
) -> Problem:
    origin = {
        "parents": [parent.problem_id],
        "made_by": "synthesis/model",
        "outputs_by": outputs_by,
        "proposer": config.model,
    }
    key = hash_text(dumps([proposal.statement, list(proposal.inputs)]))[:12]
    return Problem(
        problem_id=f"{SOURCE}/model/{key}",
        source=SOURCE,
        statement=proposal.statement,
        style="call",
        tests=tuple(tests),
        entry_point=proposal.entry_point,
        solutions=tuple(solutions),
        limits=LIMITS,
        tags=(SOURCE,),
        licence=parent.licence,
        extra=origin | {"solver": config.solver or config.model},
    )
