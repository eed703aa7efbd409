"""Plugins: those of the how-to page pass their dry steps, and faulty ones are refused early."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from problems.difficulty.pass_rate_prior import FILE, expect, write_expected
from resources.plugin_check import check_plugins
from verl_jobs.config.overrides import overrides
from verl_jobs.config.references import PluginError, Plugins, load
from verl_jobs.config.training import Training

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "write-a-plugin.md").read_text(
    encoding="utf-8"
)
ADVANTAGE = "def it(token_level_rewards, response_mask, **_):\n"
TAKES = (
    "old_log_prob, log_prob, advantages, response_mask, loss_agg_mode, config, rollout_is_weights"
)
SAMPLER = (
    "import random\nclass it:\n    def __init__(self, expected, steps, seed): ...\n"
    "    def draw(self, count): return {draw}\n    def observe(self, outcomes): ...\n"
    "    def state_dict(self): ...\n    def load_state_dict(self, state): ..."
)
OUTPUT = (
    "return AgentLoopOutput(prompt_ids=[1, 2], response_ids=[3, 4], response_mask={mask}, "
    "response_logprobs=[0.0, 0.0], metrics={{}}, reward_score={reward})"
)


def shown(folder: Path) -> Plugins:
    """Write each plugin of the page to the file that its first line names."""
    names = {}
    for name, text in re.findall(r"```python\n# (\w+\.py)\n(.*?)```", PAGE, re.DOTALL):
        (folder / name).write_text(text)
        names[name] = re.findall(r"^(?:def|class) (\w+)", text, re.MULTILINE)[-1]
    files = {
        "loss": "my_loss",
        "advantage": "my_advantage",
        "dataset": "my_dataset",
        "sampler": "my_sampler",
        "reward_manager": "my_manager",
        "agent_loop": "my_agent",
    }
    return Plugins(
        **{kind: f"{folder / file}.py:{names[f'{file}.py']}" for kind, file in files.items()}
    )


def own(folder: Path, kind: str, text: str) -> Training:
    """Return a training with the plugin `it` of this text."""
    (folder / "mine.py").write_text(text)
    return Training(plugins=Plugins(**{kind: f"{folder / 'mine.py'}:it"}))


@pytest.mark.slow
def test_every_plugin_in_the_documentation_passes_its_dry_step(tmp_path: Path) -> None:
    plugins = shown(tmp_path)
    lines = check_plugins(Training(plugins=plugins), unverified=True)
    assert [line.split()[0] for line in lines] == list(plugins.references)


@pytest.mark.parametrize("reference", ["loss.py", ":loss", "loss.py:a b"])
def test_a_plugin_reference_needs_a_file_and_a_name(reference: str) -> None:
    with pytest.raises(ValidationError, match=r"FILE\.py:NAME"):
        Plugins(loss=reference)


def test_a_missing_plugin_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PluginError, match=r"gone\.py"):
        check_plugins(Training(plugins=Plugins(loss=f"{tmp_path}/gone.py:it")), unverified=False)


def test_a_missing_plugin_name_is_refused_with_the_nearest_one(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def losses(): ...\n")
    with pytest.raises(PluginError, match=r"`loss`.*`losses`"):
        load(f"{tmp_path}/mine.py:loss")


def test_an_import_error_of_a_plugin_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import nothing_of_this_name\n")
    with pytest.raises(PluginError, match=r"mine\.py: .*ModuleNotFoundError"):
        load(f"{tmp_path}/mine.py:it")


def test_a_module_is_loaded_by_name_and_hashed_by_file() -> None:
    plugins = Plugins(loss="verl_jobs.trainer.early_stop:check")
    assert callable(load(plugins.loss))
    assert set(plugins.hashes()) == {"plugins.loss"}


def test_another_content_gives_another_hash(tmp_path: Path) -> None:
    def hashed(text: str) -> dict[str, str]:
        return own(tmp_path, "loss", text).plugins.hashes()

    assert hashed("it = 1") != hashed("it = 2")
    assert hashed("it = 1") == hashed("it = 1")


def test_plugins_of_one_file_share_its_module(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "shared = []\ndef first(): return shared\ndef second(): return shared\n"
    )
    assert load(f"{tmp_path}/mine.py:first")() is load(f"{tmp_path}/mine.py:second")()


def test_a_custom_reward_manager_needs_unverified(tmp_path: Path) -> None:
    with pytest.raises(PluginError, match="--unverified"):
        check_plugins(own(tmp_path, "reward_manager", "it = 1"), unverified=False)


@pytest.mark.parametrize("algorithm", ["ppo", "remax"])
def test_a_custom_advantage_is_refused_for_ppo_and_remax(algorithm: str) -> None:
    with pytest.raises(ValidationError, match=f"plugins.advantage .*{algorithm}.*algorithm: grpo"):
        Training.model_validate({"algorithm": algorithm, "plugins": {"advantage": "mine.py:it"}})


def test_a_sampler_and_a_schedule_exclude_each_other() -> None:
    with pytest.raises(ValidationError, match=r"plugins\.sampler .*schedule window"):
        Training.model_validate(
            {"curriculum": {"schedule": "window"}, "plugins": {"sampler": "mine.py:it"}}
        )


WRONG = [
    ("loss", "def it(log_prob): ...", "got an unexpected keyword argument"),
    ("loss", f"def it({TAKES}, beta): ...", "missing a required argument: 'beta'"),
    (
        "loss",
        f"def it({TAKES}):\n    return log_prob.mean()",
        "tensor of shape .*loss, metrics",
    ),
    (
        "loss",
        f"def it({TAKES}):\n    return log_prob.mean(), {{}}",
        "response_mask .*gradient",
    ),
    (
        "loss",
        f"def it({TAKES}):\n    return (0 * log_prob).sum(), {{}}",
        "gradient is 0",
    ),
    (
        "loss",
        f"def it({TAKES}):\n    return log_prob.detach().sum(), {{}}",
        "no gradient",
    ),
    (
        "loss",
        f"def it({TAKES}):\n    return (log_prob * response_mask).sum() / 0, {{}}",
        "its loss is",
    ),
    (
        "loss",
        f"def it({TAKES}):\n    return (log_prob * response_mask).sum(), {{'a': 'b'}}",
        "'a' is 'b'",
    ),
    ("loss", f"def it({TAKES}):\n    raise KeyError('x')", "line 2: KeyError"),
    (
        "advantage",
        "def it(token_level_rewards, response_mask): ...",
        "got an unexpected keyword argument 'config'",
    ),
    (
        "advantage",
        f"{ADVANTAGE}    return response_mask * 0, response_mask",
        "advantages are all 0",
    ),
    (
        "advantage",
        f"{ADVANTAGE}    return response_mask[:, :1], response_mask",
        r"token_level_rewards .*\(5, \d+\)|token_level_rewards .*\(6, \d+\)",
    ),
    (
        "advantage",
        f"{ADVANTAGE}    a = token_level_rewards / response_mask.sum(-1, True)\n    return a, a",
        "not finite",
    ),
    ("dataset", "class it: ...", r"torch\.utils\.data\.dataset\.Dataset"),
    (
        "dataset",
        "from verl.utils.dataset.rl_dataset import RLHFDataset\nclass it(RLHFDataset):\n"
        "    def __getitem__(self, at): return {'index': at}",
        "raw_prompt, reward_model",
    ),
    (
        "sampler",
        "class it:\n    def __init__(self, expected, steps, seed): ...\n"
        "    def draw(self, count): return [0]",
        "observe",
    ),
    ("sampler", SAMPLER.format(draw="[0]"), r"draw\(3\).*\[0\].*0 to 5"),
    (
        "sampler",
        SAMPLER.format(draw="random.sample(range(6), count)"),
        "state_dict",
    ),
    (
        "reward_manager",
        "from verl_jobs.trainer.reward_manager import SandboxRewardManager\n"
        "class it(SandboxRewardManager):\n    async def run_single(self, data): return 1.0",
        "1\\.0.*reward_score",
    ),
    (
        "reward_manager",
        "from verl.experimental.reward_loop.reward_manager.base import RewardManagerBase\n"
        "class it(RewardManagerBase):\n"
        "    def __init__(self, config, tokenizer, compute_score, **_):\n"
        "        super().__init__(config, tokenizer, compute_score)\n"
        "    async def run_single(self, data):\n"
        "        return {'reward_score': 1.0, 'reward_extra_info': {'acc': 1.0}}",
        "with 1, .* 1, .* 1: ",
    ),
    (
        "agent_loop",
        "from verl.experimental.agent_loop import AgentLoopBase\nclass it(AgentLoopBase): ...",
        "implement run",
    ),
    *(
        (
            "agent_loop",
            "from verl.experimental.agent_loop import AgentLoopBase, AgentLoopOutput\n"
            "class it(AgentLoopBase):\n    async def run(self, sampling_params, **row):\n"
            f"        {OUTPUT.format(mask=mask, reward=reward)}",
            why,
        )
        for mask, reward, why in [
            ("[1]", None, "2 response_ids, 1 in response_mask"),
            ("[1, 1]", None, "response_mask must be 1"),
        ]
    ),
]


@pytest.mark.slow
def test_an_error_of_a_plugin_names_the_plugin(tmp_path: Path) -> None:
    """Run in one process, since importing verl is slow; functions share one tiny training."""
    from verl_jobs.plugins.dry_steps import STEPS
    from verl_jobs.plugins.tiny_training import TinyTraining

    shared = TinyTraining(Training(), tmp_path)
    for number, (kind, text, why) in enumerate(WRONG):
        folder = tmp_path / str(number)
        folder.mkdir()
        training = own(folder, kind, text + "\n")
        with pytest.raises(PluginError, match=why) as caught:
            STEPS[kind](
                load(training.plugins.references[kind]),
                training.plugins.references[kind],
                shared
                if kind in ("loss", "advantage", "sampler")
                else TinyTraining(training, folder),
            )
        assert str(caught.value).startswith(f"{folder / 'mine.py'}:it: ")


def dataloader(tiny_training: Any, training: Training) -> Any:
    """Return the dataloader that verl's trainer makes from the overrides (trainer_base.py)."""
    from hydra import compose, initialize_config_module
    from torchdata.stateful_dataloader import StatefulDataLoader
    from verl.trainer.ppo.utils import create_rl_dataset, create_rl_sampler
    from verl.utils.dataset.rl_dataset import collate_fn

    paths = {
        "model": tiny_training.model,
        "train": tiny_training.rows,
        "validation": tiny_training.rows,
        "folder": tiny_training.folder,
    }
    with initialize_config_module(config_module="verl.trainer.config", version_base=None):
        config = compose(
            "ppo_trainer", overrides=overrides(training, seed=1, loggers=[], name="t", **paths)
        ).data
    dataset = create_rl_dataset(config.train_files, config, tiny_training.tokenizer, None)
    return StatefulDataLoader(
        dataset,
        batch_size=2,
        num_workers=0,
        collate_fn=collate_fn,
        sampler=create_rl_sampler(config, dataset),
    )


@pytest.mark.slow
def test_a_custom_sampler_and_dataset_resume_from_the_dataloader_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from verl_jobs.curriculum import curriculum
    from verl_jobs.plugins.tiny_training import TinyTraining

    monkeypatch.setattr(curriculum, "_present", None)
    page, tiny_training = shown(tmp_path), TinyTraining(Training(), tmp_path)
    write_expected(expect(tiny_training.problems, [], {}), tmp_path / FILE)
    training = Training(plugins=Plugins(dataset=page.dataset, sampler=page.sampler))
    loader = dataloader(tiny_training, training)
    batches = iter(loader)
    first = next(batches)
    assert all(
        row[-1]["content"].endswith("Write the program alone.") for row in first["raw_prompt"]
    )
    table = curriculum.current_table()
    assert table
    table.observe([(problem_id, True) for problem_id in ids(first)])
    state = loader.state_dict()  # verl writes this to data.pt
    second = ids(next(batches))
    assert not set(second) & set(
        ids(first)
    )  # the page's sampler prefers problems solved least often
    resumed = dataloader(tiny_training, training)
    resumed.load_state_dict(state)
    assert ids(next(iter(resumed))) == second


def ids(batch: Any) -> list[str]:
    return [str(about["problem_id"]) for about in batch["extra_info"]]
