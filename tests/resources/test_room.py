"""Too little room is told before anything starts, with the numbers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from resources.home import NotReady
from resources.profile import Profile, load_profile
from resources.room import check_machines, gpus_here, memory_gib
from verl_jobs.config import Training
from verl_jobs.scale import Scale
from verl_jobs.tiny_model import TinyModel


def listing(folder: Path, monkeypatch: pytest.MonkeyPatch, lines: str) -> None:
    """An `nvidia-smi` that says these lines: this machine has none of its own."""
    program = folder / "nvidia-smi"
    program.write_text(f"#!/bin/sh\nprintf '{lines}'\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def test_the_default_needs_what_was_measured_for_it() -> None:
    assert memory_gib(Profile()) == Profile().needs.memory_gib


def test_a_larger_model_and_longer_answers_need_more() -> None:
    large = Profile(tiny_model=TinyModel(hidden=1024, layers=12, heads=16), training=Training(answer_tokens=1000))
    assert memory_gib(large) > memory_gib(Profile()) + 5


def test_a_hub_model_of_unknown_shape_needs_what_the_profile_says() -> None:
    assert memory_gib(Profile(base="nobody/nothing")) == Profile().needs.memory_gib


def test_an_engine_on_gpus_without_gpus_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotReady, match="engine vllm with 1 ranks needs as many GPUs, nvidia-smi lists 0"):
        check_machines(load_profile("gpu"))


def test_a_training_that_is_submitted_elsewhere_needs_no_gpu_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    check_machines(load_profile("cluster"))


def test_what_does_not_fit_on_the_gpus_here_is_refused_with_the_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listing(tmp_path, monkeypatch, "NVIDIA GeForce RTX 2080, 8192\\n")
    assert [gpu.memory for gpu in gpus_here()] == [8 * 2**30]
    with pytest.raises(NotReady, match=r"0.5B-Instruct does not fit on 1 x NVIDIA GeForce RTX 2080 \(8 GiB each"):
        check_machines(load_profile("gpu"))


def test_several_nodes_want_a_ray_that_has_them() -> None:
    with pytest.raises(NotReady, match=r"training\.scale\.nodes 2: a Ray of this machine's own has one node"):
        check_machines(Profile(training=Training(ranks=2, scale=Scale(nodes=2))))
