"""The recipes in examples/: each is a profile that loads and whose parts are valid.

One tiny run of real verl on Ray uses the plugins of all of them together.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from problems.dataset.rl_parquet import write_verl
from problems.difficulty.pass_rate_prior import FILE, expect, write_expected
from problems.embedded.compositional import generate
from problems.embedded.settings import FamilyConfig
from problems.prompt import prompt_text
from resources.config.load import load_profile
from resources.config.profile import Profile
from rewards.battery.battery import run_battery
from rewards.composite import reward_hash
from rewards.own import reward_of
from sandbox.sandbox import Sandbox
from tests.verl_jobs.real_trainings import run
from verl_jobs.config.training import Training
from verl_jobs.curriculum import draws
from verl_jobs.job import TrainingJob, metrics
from verl_jobs.samples import CUT, Sample, read
from verl_jobs.sft.tiny_model import TinyModel, make

ROOT = Path(__file__).parents[2]
RECIPES = sorted((ROOT / "examples").glob("*.yaml"))
# The plug-ins of docs/how-to/write-a-plugin.md; Recorded is defined below.
PARTS = {
    "dataset": "my_dataset:Recorded",
    "sampler": "my_sampler:Unsolved",
    "reward_manager": "my_manager:Shorter",
    "agent_loop": "my_agent:Prefilled",
}
RECORDED = """

from pathlib import Path

class Recorded(Briefly):
    def __getitem__(self, item):
        row = super().__getitem__(item)
        Path(__file__).with_name("prompt.txt").write_text(row["raw_prompt"][-1]["content"])
        return row
"""


def profile(name: str, monkeypatch: pytest.MonkeyPatch) -> Profile:
    """Load a recipe in the root of the repository, where its paths begin."""
    monkeypatch.chdir(ROOT)
    return load_profile(f"examples/{name}.yaml")


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_every_recipe_loads_and_names_its_command(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = profile(path.stem, monkeypatch)
    assert f"ratchet train --profile examples/{path.name}" in path.read_text(encoding="utf-8")
    assert recipe != Profile()
    assert set(recipe.training.plugins.hashes()) == {
        f"plugins.{kind}" for kind in recipe.training.plugins.references
    }


@pytest.mark.slow
def test_the_example_reward_passes_the_battery(monkeypatch: pytest.MonkeyPatch) -> None:
    with Sandbox() as sandbox:
        battery = run_battery(reward_of(profile("own_reward", monkeypatch).reward), sandbox)
    assert not [row for row in battery.rows if not row.passed]


def tiny_job(training: Training, reward: Any, folder: Path, visible_tests: int = 0) -> TrainingJob:
    """Return a training of an untrained model, with its data written."""
    problems = generate(
        FamilyConfig(demonstrations=1, train=16, validation=4, visible_tests=visible_tests)
    )
    make(TinyModel(), map(prompt_text, problems), folder / "start")
    train = [problem for problem in problems if problem.split == "train"]
    write_verl(train, folder / "train.parquet")
    write_expected(expect(train, [], {}), folder / FILE)
    write_verl(
        [problem for problem in problems if problem.split == "validation"],
        folder / "validation.parquet",
    )
    return TrainingJob(
        folder=str(folder),
        run_id="examples",
        start=str(folder / "start"),
        train=str(folder / "train.parquet"),
        validation=str(folder / "validation.parquet"),
        inputs=training.plugins.hashes(),
        training=training,
        reward=reward,
        reward_hash=reward_hash(reward),
        isolation="auto",
        seed=1,
    )


def train_tiny(
    training: Training, reward: Any, folder: Path, visible_tests: int = 0
) -> TrainingJob:
    """Run real verl on Ray on an untrained model; its Ray ends with the process that owns it."""
    job = tiny_job(training, reward, folder, visible_tests)
    run(job)
    return job


@pytest.mark.slow
@pytest.mark.timeout(500)
def test_one_run_uses_every_kind_of_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PPO with a critic, as in examples/ppo.yaml, for one step."""
    page = (ROOT / "docs" / "how-to" / "write-a-plugin.md").read_text(encoding="utf-8")
    for name, text in re.findall(r"```python\n# (\w+\.py)\n(.*?)```", page, re.DOTALL):
        (tmp_path / name).write_text(text)
    with (tmp_path / "my_dataset.py").open("a") as file:
        file.write(RECORDED)
    recipe = yaml.safe_load((ROOT / "examples" / "ppo.yaml").read_text())["training"]
    parts = {kind: f"{tmp_path}/{where.replace(':', '.py:')}" for kind, where in PARTS.items()}
    parts["loss"] = profile("own_loss", monkeypatch).training.plugins.loss
    small = {
        "steps": 1,
        "save_every": 1,
        "problems_per_step": 4,
        "group_size": 2,
        "warm_up_steps": 0,
        "plugins": parts,
    }
    job = train_tiny(
        Training.model_validate(recipe | small), profile("own_reward", monkeypatch).reward, tmp_path
    )

    [last] = [row for row in metrics(job.path) if row["step"] == 1]
    assert "actor/cut_weights" in last
    assert "critic/vf_loss" in last
    samples = read(job.path, 1)
    assert len(draws.read(job.path, 1)) == 4
    # The model is untrained, so some completions are truncated.
    assert last[CUT] == sum(sample.cut for sample in samples) / 8 > 0
    assert len(samples) == 8
    assert all(set(sample.trace) == {"own"} for sample in samples)
    assert all(sample.answer.startswith("def solve(") for sample in samples)
    assert all(shorter(sample) for sample in samples)
    assert (tmp_path / "prompt.txt").read_text().endswith("Write the program alone.")
    assert json.loads((job.path / "job.json").read_text())["inputs"].keys() == {
        f"plugins.{kind}" for kind in parts
    }


@pytest.mark.soak
@pytest.mark.timeout(1500)
@pytest.mark.parametrize(
    "name", ["ppo", "own_reward", "own_loss", "curriculum", "multi_turn", "transfer"]
)
def test_a_recipe_trains_one_step(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each recipe on its own; `two_nodes` is in test_two_nodes.py."""
    recipe = profile(name, monkeypatch)
    tiny = recipe.training.model_copy(
        update={
            "steps": 1,
            "save_every": 1,
            "problems_per_step": 4,
            "group_size": 2,
            "warm_up_steps": 0,
        }
    )
    job = train_tiny(tiny, recipe.reward, tmp_path, recipe.family.visible_tests)
    [last] = [row for row in metrics(job.path) if row["step"] == 1]
    samples = read(job.path, 1)
    match name:
        case "ppo":
            assert "critic/vf_loss" in last
            assert "actor/cut_weights" not in last
        case "own_reward":
            assert all(set(sample.trace) == {"own"} for sample in samples)
        case "own_loss":
            assert "actor/cut_weights" in last
            assert "critic/vf_loss" not in last
        case "curriculum":
            assert len(draws.read(job.path, 1)) == 4
        case "multi_turn":
            assert last["num_turns/mean"] > 2
            assert len(samples) >= 8
            assert last[CUT] == sum(sample.cut for sample in samples) / len(samples) > 0
        case "transfer":
            assert list((job.path / "candidates" / "step-000001").rglob("adapter_config.json"))


def shorter(sample: Sample) -> bool:
    """Return whether the reward manager subtracted 0.001 per token.

    A completion has 1 to 112 tokens.
    """
    return 0.001 <= round(sum(sample.trace.values()) - sample.reward, 6) <= 0.112
