"""verl's FSDP2 engine with adapters or frozen layers trains, feeds our rollouts and saves.

Config and classes are those of a training; Ray, the data and the reward are left out.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.verl_jobs.real_trainings import lines_of
from tests.verl_jobs.saves import ADAPTED
from verl_jobs.config.environment import environment
from verl_jobs.config.lora import Lora
from verl_jobs.config.training import Training
from verl_jobs.sft.tiny_model import TinyModel, make

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
]  # importing verl takes longer than all of this
ENGINE = """
import asyncio, json, sys
from pathlib import Path
import torch
from hydra import compose, initialize_config_module
from transformers import AutoModelForCausalLM
from verl.utils.config import omega_conf_to_dataclass
from verl.workers.engine.fsdp.transformer_impl import FSDPEngineWithLMHead
from verl_jobs.cpu.rollout import HFRollout, HFServer
from verl_jobs.config.lora import Lora, merge_folder
from verl_jobs.trainer.rank_save import wait_for_writers
from artifacts.tensors import weights_hash

folder, ids = Path(sys.argv[1]), torch.tensor([[1, 5, 9, 33, 7, 12]])
initialize_config_module(config_module="verl.trainer.config", version_base=None)
config = compose("ppo_trainer", overrides=json.load(sys.stdin)).actor_rollout_ref
store = torch.distributed.HashStore()
torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
actor = omega_conf_to_dataclass(config.actor)
actor.model_config = model_config = omega_conf_to_dataclass(config.model)
engine = FSDPEngineWithLMHead(model_config, actor.engine, actor.optim, actor.checkpoint)
engine.initialize()
for _ in range(3):
    engine.module(input_ids=ids, labels=ids, use_cache=False).loss.backward()
    engine.optimizer.step()
    engine.optimizer.zero_grad()
server = HFServer(str(folder / "model"), {"seed": 0}, 1)


class Remote:  # a Ray actor's methods, called here
    def __getattr__(self, name):
        method = getattr(server, name)
        return type("Method", (), {"remote": staticmethod(method)})


rollout = HFRollout.__new__(HFRollout)
rollout.server = Remote()
for done in (False, True):  # as verl's ActorRolloutRefWorker.update_weights does
    weights, peft = engine.get_per_tensor_param(base_sync_done=done)
    asyncio.run(
        rollout.update_weights(weights, global_steps=1, peft_config=peft, base_sync_done=done)
    )
engine.module.eval()
engine.save_checkpoint(str(folder / "save"), global_step=1)
wait_for_writers()  # a training resumes in another process, from a save that is complete
with torch.no_grad():
    wanted = engine.module(input_ids=ids, use_cache=False).logits
    for parameter in engine.module.parameters():
        parameter.zero_()
engine.load_checkpoint(str(folder / "save"), del_local_after_load=False)
if model_config.lora_rank:
    lora = Lora(rank=model_config.lora_rank, alpha=model_config.lora_alpha)
    merge_folder(folder / "save" / "huggingface", lora)
saved = AutoModelForCausalLM.from_pretrained(
    folder / "save" / "huggingface", dtype=torch.float32
).eval()
before = dict(AutoModelForCausalLM.from_pretrained(folder / "model").named_parameters())
with torch.no_grad():
    resumed = engine.module(input_ids=ids, use_cache=False).logits
    others = (server.model(ids).logits, saved(ids).logits, resumed)
    apart = [float((logits - wanted).abs().max()) for logits in others]
changed = [
    name for name, parameter in saved.named_parameters() if not torch.equal(parameter, before[name])
]
config = json.loads((folder / "save" / "huggingface" / "config.json").read_text())
digests = [server.weights.digest, weights_hash(folder / "save" / "huggingface")]
told = {"apart": apart, "changed": changed, "config": config, "digests": digests}
print("TOLD", json.dumps(told))
"""


def outcome(folder: Path, training: Training) -> dict[str, Any]:
    make(
        TinyModel(hidden=32, layers=2, vocabulary=300),
        ["sort the list", "return sorted(x)"] * 4,
        folder / "model",
    )
    lines = lines_of(training, folder)
    settings = os.environ | environment(training) | {"OMP_NUM_THREADS": "1"}
    run = subprocess.run(
        [sys.executable, "-c", ENGINE, str(folder)],
        input=json.dumps(lines),
        env=settings,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    result: dict[str, Any] = json.loads(
        next(line for line in run.stdout.splitlines() if line.startswith("TOLD")).removeprefix(
            "TOLD "
        )
    )
    return result


def test_adapters_reach_rollouts_and_checkpoint_merged(tmp_path: Path) -> None:
    result = outcome(tmp_path, Training(lora=Lora(rank=4, alpha=12), learning_rate=1e-2))
    assert max(result["apart"]) < 1e-5, (
        "rollouts, checkpoint and a resumed trainer have the weights of the policy, in fp32"
    )
    assert len({*result["digests"]}) == 1, "completions name the weights of the checkpoint"
    assert {name.rsplit(".", 2)[1] for name in result["changed"]} == ADAPTED
    assert (tmp_path / "save" / "huggingface" / "adapter" / "adapter_config.json").exists()


def test_frozen_layers_keep_their_values_and_the_config_is_clean(tmp_path: Path) -> None:
    result = outcome(
        tmp_path, Training(frozen=("model.layers.0.*", "model.embed_tokens.*"), learning_rate=1e-2)
    )
    assert max(result["apart"]) == 0.0
    assert len({*result["digests"]}) == 1
    assert "frozen" not in result["config"]
    assert result["changed"]
    assert all(name.startswith(("model.layers.1.", "model.norm")) for name in result["changed"])
