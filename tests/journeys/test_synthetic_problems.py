"""Synthesis of problems with a real model behind an HTTP endpoint.

A tiny model memorizes a few proposals and solutions, and only repeats them: the test covers the
path from a completion to an accepted problem. No response is canned.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import dagster as dg
import pytest

from problems.cleaning.curation import curate
from problems.embedded.compositional import generate
from problems.embedded.settings import FamilyConfig
from problems.schema import Problem, read_parquet
from problems.synthesis.endpoint import Endpoint
from problems.synthesis.proposals import MIN_INPUTS, PROPOSE, SOLVE
from problems.synthesis.replies import Replies
from problems.synthesis.settings import Synthesis
from problems.synthesis.synthesize import synthesize
from problems.verification.verification import verify
from resources.home import Home
from resources.run_context import RunContext
from resources.settings import Settings
from sandbox.sandbox import Sandbox, SandboxConfig
from tests.serving.faulty_proxy import FAULTS, proxy_to, served

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


def lesson(seed: Problem, target: Problem) -> list[tuple[str, str]]:
    """Return prompt and completion of a proposal for the seed problem, and of its solution.

    The solution is another of the target's programs than the proposal's.
    """
    inputs = json.dumps([test["args"] for test in target.tests[1:5]])
    proposal = (
        f"## Problem\n{target.statement}\n## Solution\n```python\n{target.solutions[0]}\n```\n"
        f"## Inputs\n{inputs}"
    )
    prompt = PROPOSE.format(snippet=seed.solutions[0].strip(), inputs=MIN_INPUTS)
    return [
        (prompt, proposal),
        (
            SOLVE.format(statement=target.statement, entry="solve"),
            f"```python\n{target.solutions[1]}\n```",
        ),
    ]


def test_proposals_with_agreeing_solutions_are_accepted(tmp_path: Path) -> None:
    from verl_jobs.sft.tiny_model import TinyModel, make
    from verl_jobs.sft.warm_up import WarmUp, warm_up

    family = [
        problem
        for problem in generate(FamilyConfig(demonstrations=1, train=60, validation=1))
        if problem.split == "train" and "table" not in problem.tags
    ]
    seeds = [replace(family[0], solutions=family[0].solutions[:1])]
    chats = [
        chat
        for seed, target in zip(seeds, family[1:2], strict=True)
        for chat in lesson(seed, target)
    ]
    make(
        TinyModel(hidden=64, layers=1, heads=2, positions=1024),
        [text for chat in chats for text in chat],
        tmp_path / "random",
    )
    warm_up(
        tmp_path / "random",
        chats,
        WarmUp(steps=80, batch=2, learning_rate=1e-2, optimizer="adamw", threads=1),
        tmp_path / "trained",
    )
    config = Synthesis(
        endpoint="here",
        model="champion",
        problems=1,
        answers=2,
        temperature=0.1,
        max_tokens=400,
        requests=60,
    )
    with (
        served(tmp_path / "trained", Home(tmp_path / "home")) as server,
        proxy_to(server) as proxy,
        Endpoint(proxy.url, pause_s=0.001) as endpoint,
        Replies(tmp_path / "replies.jsonl", endpoint) as replies,
        Sandbox(SandboxConfig(workers=2)) as sandbox,
    ):
        proxy.faults = list(FAULTS)
        synthesis = synthesize(seeds, config, 1, replies, sandbox)
        verified = verify(synthesis.problems, sandbox, tmp_path / "journal.jsonl").problems
    expected = {
        problem.statement: {json.dumps(test["args"]): test["expected"] for test in problem.tests}
        for problem in family[1:2]
    }
    for problem in verified:
        assert problem.parents[0] in {seed.problem_id for seed in seeds}
        assert len(problem.solutions) == 2
        assert all(
            expected[problem.statement][json.dumps(test["args"])] == test["expected"]
            for test in problem.tests
        )
    assert verified
    assert curate(verified, []).problems == verified


@pytest.mark.usefixtures("few_simple_problems")
def test_the_stage_records_every_rejected_proposal(tmp_path: Path) -> None:
    from pipelines.definitions import defs
    from verl_jobs.sft.tiny_model import TinyModel, make

    make(
        TinyModel(hidden=32, layers=1, heads=2, positions=2048), ["def f(x):"], tmp_path / "random"
    )
    with (
        served(tmp_path / "random", Home(tmp_path / "served")) as server,
        proxy_to(server) as proxy,
        dg.DagsterInstance.ephemeral() as instance,
    ):
        profile = tmp_path / "profile.yaml"
        synthesis = (
            f"{{endpoint: '{proxy.url}', model: champion, problems: 1, requests: 6, "
            "max_tokens: 16}"
        )
        profile.write_text(
            (
                f"family: {{demonstrations: 4, train: 4, validation: 2}}\n"
                f"augmentation: {{kinds: []}}\nsynthesis: {synthesis}"
            ),
            encoding="utf-8",
        )
        run_context = RunContext.of(Settings(Home(tmp_path / "home"), str(profile)))
        job = defs.resolve_job_def("refresh_data")
        assert job.execute_in_process(instance=instance, resources=run_context.resources).success
        requests = sum(proxy.heard.values())
        assert job.execute_in_process(instance=instance, resources=run_context.resources).success
        assert sum(proxy.heard.values()) == requests == 8  # in groups of four
    artifact = run_context.store.require("datasets", "synthetic_problems")
    removed = json.loads((artifact.path / "removed.json").read_text(encoding="utf-8"))
    assert artifact.manifest.facts["proposals"] == 8 == len(removed)
    assert read_parquet(artifact.path / "problems.parquet") == []
    assert {row["reason"] for row in removed} == {"no section problem"}
