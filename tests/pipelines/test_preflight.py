"""The preflight checks refuse what would stop a pipeline run later, and nothing else."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from artifacts.manifest import Manifest
from problems.catalogue import add_source
from problems.sources.registry import SOURCES
from resources.config.profile import Profile
from resources.home import Home, NotReady
from resources.preflight import check_policy
from tests.pipelines.home_builder import HomeBuilder
from verl_jobs.config.agents import Agents
from verl_jobs.config.training import Training
from verl_jobs.sft.tiny_model import TinyModel

LONG = Training(answer_tokens=5000)


def test_a_stored_base_may_be_missing_on_disk(tmp_path: Path) -> None:
    home, profile = Home(tmp_path / "home"), Profile(base=str(tmp_path / "mine"))
    with pytest.raises(NotReady, match="base: no folder"):
        check_policy(home, profile)
    store = home.store()
    with store.draft("checkpoints", "base_model") as folder:
        (folder / "config.json").write_text("{}")
        store.publish(
            folder,
            Manifest(
                kind="checkpoints",
                name="base_model",
                key="k",
                content_hash="",
                config={"base": profile.base},
            ),
        )
    add_source(home.path, "simple", None)
    check_policy(home, profile)
    with pytest.raises(NotReady, match="base: no folder"):
        check_policy(home, Profile(base=str(tmp_path / "another")))


def test_a_named_base_without_sources_is_refused_with_three_commands(tmp_path: Path) -> None:
    home, profile = Home(tmp_path / "home"), Profile(base="nobody/nothing")
    with pytest.raises(NotReady) as refused:
        check_policy(home, profile)
    commands = re.findall(r"`ratchet data add (\w+)", str(refused.value))
    assert len(commands) == 3
    assert {"taco", "everyday"} < set(commands)
    assert "taco" in SOURCES
    add_source(home.path, commands[-1], None)
    check_policy(home, profile)


def test_a_named_base_with_benchmarks_alone_is_refused(tmp_path: Path) -> None:
    home, profile = Home(tmp_path / "home"), Profile(base="nobody/nothing")
    row = {"task_id": "Mbpp/11", "statement": "Remove a letter.", "style": "call", "tests": []}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row | {"problem_id": "a"}))
    add_source(home.path, "mine", tmp_path / "rows.jsonl")
    with pytest.raises(NotReady, match="no problem of the sources may be trained on"):
        check_policy(home, profile)


@pytest.mark.slow
def test_prompts_longer_than_the_limit_are_refused_before_the_first_stage(tmp_path: Path) -> None:
    from verl_jobs.sft.tiny_model import make

    home, base = Home(tmp_path / "home"), tmp_path / "base"
    make(TinyModel(hidden=32, layers=1, heads=2), ["Write f(x)."], base)
    add_source(home.path, "everyday", None)

    def check(**limits: int) -> None:
        training = Training.model_validate({"answer_tokens": 32, **limits})
        check_policy(home, Profile(base=str(base), training=training))

    check(prompt_tokens=400)
    with pytest.raises(NotReady, match=r"everyday: 0 prompts have at most 4 tokens.*shortest has"):
        check(prompt_tokens=4)
    with pytest.raises(NotReady, match="problems to train on, fewer than the 9999 of a step"):
        check(prompt_tokens=400, problems_per_step=9999)


def test_a_pipeline_run_does_not_train_a_reviewer(tmp_path: Path) -> None:
    training = Training(agents=Agents(trains="reviewer", generator="g"))
    with pytest.raises(NotReady, match="ratchet reviewer reinforce"):
        check_policy(Home(tmp_path / "home"), Profile(training=training))


def test_a_gate_whose_benchmark_cannot_be_read_is_refused(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    gated = {"evaluation": {"benchmarks": ["humaneval"]}, "policy": {"benchmark": "humaneval"}}
    profile = Profile.model_validate(gated)
    with pytest.raises(NotReady, match=r"humaneval cannot gate: .*`ratchet data add humaneval"):
        check_policy(home, profile)
    broken = tmp_path / "HumanEval.jsonl"
    broken.write_text('{"task_id": "HumanEval/0"}\n')
    add_source(home.path, "humaneval", broken)
    with pytest.raises(NotReady, match="humaneval cannot gate: its data cannot be used"):
        check_policy(home, profile)


def test_a_gate_without_tasks_is_refused(tmp_path: Path) -> None:
    home, file = Home(tmp_path / "home"), tmp_path / "mbpp.jsonl"
    training_task = {"task_id": 601, "text": "Write double(x).", "code": "def double(x): return x"}
    file.write_text(json.dumps(training_task | {"test_list": ["assert double(2) == 2"]}) + "\n")
    add_source(home.path, "mbpp", file)
    gated = {"evaluation": {"benchmarks": ["mbpp"]}, "policy": {"benchmark": "mbpp"}}
    with pytest.raises(NotReady, match=r"mbpp cannot gate: .* mbpp has no tasks"):
        check_policy(home, Profile.model_validate(gated))


def test_a_champion_is_not_checked_against_the_tiny_model(home_builder: HomeBuilder) -> None:
    home = home_builder.run_context.home
    with pytest.raises(NotReady, match=r"tiny_model.positions is 512"):
        check_policy(home, Profile(training=LONG))
    home_builder.promoted("chain-0001-sft")
    check_policy(home, Profile(training=LONG))


def test_a_stored_training_with_an_unreached_trace_step_loads() -> None:
    assert Training.model_validate_json(
        Training(steps=4, save_every=2, trace=(9,)).model_dump_json()
    ).trace == (9,)
