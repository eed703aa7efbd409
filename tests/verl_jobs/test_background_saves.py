"""Saves that are written while the training continues: copies, hashes, weights, kills."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

from artifacts.hashing import HashedFile
from artifacts.tensors import write_tensors
from tests.verl_jobs.saves import a_save, save_as_verl, scored
from tests.verl_jobs.test_job import a_job
from verl_jobs.job import candidates
from verl_jobs.sft.tiny_model import TinyModel, make
from verl_jobs.trainer import trainer_lease
from verl_jobs.trainer.background import Background, copy_to_host, fits, size_of
from verl_jobs.trainer.checkpoints import SEAL, damage, repair
from verl_jobs.trainer.export import INDEX, aliases, gather_part, own_precision, raw
from verl_jobs.trainer.rank_save import SaveFailed, collect, save, wait_for_writers
from verl_jobs.trainer.replay_buffer import WatchedReplayBuffer

ROOT = Path(__file__).parents[2]
# Saves that follow each other without end. All values of a save are its step.
TRAINER = """
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
import torch
from omegaconf import OmegaConf
from transformers import AutoModelForCausalLM, AutoConfig
from verl_jobs.trainer.callback import AfterSave
from verl_jobs.trainer.checkpoints import repair
from verl_jobs.trainer.rank_save import save
folder = Path(sys.argv[1])
trainer = {"default_local_dir": str(folder / "saves"), "save_freq": 1, "test_freq": 1}
callback = AfterSave(OmegaConf.create({"trainer": trainer | {"nnodes": 1, "n_gpus_per_node": 1}}))
model = AutoModelForCausalLM.from_pretrained(folder / "start")
step = repair(folder) or 0
while True:
    step += 1
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(step)
    actor = folder / "saves" / f"global_step_{step}" / "actor"
    (actor / "huggingface").mkdir(parents=True)
    files = {"model": model.state_dict(), "optim": {"moments": torch.full((1 << 22,), step)}}
    save(SimpleNamespace(module=model, files=files, exports=True, rank=0, ranks=1), actor)
    callback.on_save(SimpleNamespace(), step, str(actor.parent), async_save=True)
    print(step, flush=True)
"""


def test_a_second_task_waits_for_the_first_and_gets_its_error() -> None:
    begun, go, background = threading.Event(), threading.Event(), Background("test")

    def fails() -> None:
        begun.set()
        go.wait()
        raise OSError("no space left on device")

    background.start(fails)
    assert begun.wait(10)
    go.set()
    with pytest.raises(OSError, match="no space"):
        background.start(lambda: None)
    background.wait()  # the error is raised once


@given(st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=8))
def test_a_copy_keeps_the_values_of_its_moment(values: list[float]) -> None:
    weight = torch.tensor(values)
    state = {"a": weight, "tied": weight, "groups": [{"lr": 1.0, "moment": weight * 2}]}
    copied = copy_to_host(state)
    weight.fill_(7.0)
    assert copied["a"].tolist() == torch.tensor(values).tolist()
    assert copied["tied"] is copied["a"]
    assert copied["groups"][0]["lr"] == 1.0
    assert size_of(copied) == 3 * 4 * len(values)


def test_without_room_for_a_copy_the_save_is_complete_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("verl_jobs.trainer.background.ROOM", 1 << 60)
    state = SimpleNamespace(files={"model": {"a": torch.ones(3)}}, exports=False, rank=0, ranks=1)
    assert not fits(state.files, 1)
    save(state, tmp_path)
    assert (tmp_path / "hashes_rank_0.json").exists()


def test_a_rank_that_cannot_write_fails_the_save(tmp_path: Path) -> None:
    state = SimpleNamespace(
        files={"model": {"a": threading.Lock()}}, exports=False, rank=0, ranks=1
    )
    (tmp_path / "actor").mkdir()
    save(state, tmp_path / "actor")
    with pytest.raises(SaveFailed, match="rank 0 of actor cannot save: TypeError"):
        collect(tmp_path, ["actor"], 1)
    with pytest.raises(TypeError):
        wait_for_writers()


@pytest.mark.slow
def test_a_rank_that_cannot_tell_its_error_ends(tmp_path: Path) -> None:
    code = (
        "import contextlib, sys, threading; from pathlib import Path\n"
        "from verl_jobs.trainer.rank_save import _write\n"
        "with contextlib.suppress(Exception):\n"
        "    _write({'model': threading.Lock()}, None, Path(sys.argv[1]) / 'gone', 0, 1)\n"
        "print('it continues')\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "FileNotFoundError" in ended.stderr


@pytest.mark.parametrize("ranks", [1, 3])
def test_the_parts_of_all_ranks_are_the_model_in_its_own_precision(
    ranks: int, tmp_path: Path
) -> None:
    make(TinyModel(hidden=32, layers=1), ["a"], tmp_path)
    model = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"dtype": "bfloat16"}))
    (tmp_path / "model.safetensors").unlink()
    precision, tied = own_precision(tmp_path), aliases(model)
    assert tied == {"lm_head.weight"}
    assert precision is torch.bfloat16
    sizes = []
    for rank in range(ranks):
        part = gather_part(model.state_dict(), tied, precision, rank, ranks)
        with HashedFile(tmp_path / part.file) as file:
            write_tensors(file, raw(part.tensors))
        sizes.append((tmp_path / part.file).stat().st_size)
        if part.contents:
            (tmp_path / INDEX).write_text(part.contents)
    assert max(sizes) < 1.5 * min(sizes)
    again = AutoModelForCausalLM.from_pretrained(tmp_path, dtype="auto")
    assert again.dtype == torch.bfloat16
    assert aliases(again) == tied
    for name, value in model.state_dict().items():
        assert torch.equal(again.state_dict()[name], value.bfloat16()), name


def test_a_models_buffers_are_written_too(tmp_path: Path) -> None:
    state = {"w": torch.rand(2), "steps": torch.tensor(7), "mask": torch.tensor([True, False])}
    part = gather_part(state, (), torch.bfloat16, 0, 1)
    with (tmp_path / part.file).open("wb") as file:
        write_tensors(file, raw(part.tensors))
    again = load_file(tmp_path / part.file)
    assert torch.equal(again["steps"], state["steps"])
    assert torch.equal(again["mask"], state["mask"])


def test_after_a_notice_the_training_ends_at_the_save_in_flight(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    callback, written = save_as_verl(a_job(tmp_path), []), threading.Event()
    monkeypatch.setenv("VERL_FILE_LOGGER_PATH", str(tmp_path / "metrics-001.jsonl"))

    def complete() -> None:
        written.wait()
        a_save(tmp_path, 3)

    callback.completing.start(complete)
    trainer_lease.give_notice(tmp_path, "SIGTERM")
    buffer: Any = object.__new__(WatchedReplayBuffer)
    buffer.step, buffer.trainer = 3, SimpleNamespace(checkpoint_callback=callback)
    threading.Timer(0.2, written.set).start()
    with pytest.raises(trainer_lease.TrainingEnded, match="SIGTERM"):
        buffer._before_batch(4)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_kill_at_any_moment_leaves_a_whole_save(tmp_path: Path) -> None:
    job = a_job(tmp_path)
    job.write()
    scored(tmp_path, {0: 0.1})
    make(TinyModel(hidden=256, layers=4), ["a"], tmp_path / "start")
    rng, reached, unsealed = random.Random(3), 0, 0
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    for _ in range(5):
        command = [sys.executable, "-c", TRAINER, str(tmp_path)]
        with subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, text=True
        ) as trainer:
            assert trainer.stdout
            returned = [int(trainer.stdout.readline()) for _ in range(rng.randint(1, 4))]
            time.sleep(rng.uniform(0, 0.3))
            trainer.send_signal(signal.SIGKILL)
            returned += [int(line) for line in trainer.stdout]
        unsealed += sum(
            not (each / SEAL).exists() for each in (tmp_path / "saves").glob("global_step_*")
        )
        step = repair(tmp_path) or 0
        assert step >= max(returned) - 1, "more than the save in flight is lost"
        if step:
            whole = tmp_path / "saves" / f"global_step_{step}"
            assert not damage(whole)
            files = [torch.load(path) for path in (whole / "actor").glob("*.pt")]
            weights = load_file(candidates(tmp_path)[step] / "model.safetensors")
            tensors = [each for file in (*files, weights) for each in file.values()]
            assert {float(each.min()) for each in tensors} == {float(step)}
            assert {float(each.max()) for each in tensors} == {float(step)}
        reached = step
    assert reached > 4, "no kill came in the middle of a save"
    assert unsealed, "no kill came in the middle of a save"
