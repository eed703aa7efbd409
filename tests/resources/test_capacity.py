"""Too little room is told before anything starts, with the numbers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from resources.capacity import check_fetched, check_machines, gpus_here, memory_gib, unasked
from resources.config.load import load_profile
from resources.config.profile import Kubernetes, Orchestration, Profile, RayPlace
from resources.home import NotReady
from verl_jobs.config.scale import Megatron, Scale
from verl_jobs.config.training import Training
from verl_jobs.sft.tiny_model import TinyModel


def listing(folder: Path, monkeypatch: pytest.MonkeyPatch, lines: str) -> None:
    """An `nvidia-smi` that says these lines: this machine has none of its own."""
    program = folder / "nvidia-smi"
    program.write_text(f"#!/bin/sh\nprintf '{lines}'\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def test_the_default_needs_what_was_measured_for_it() -> None:
    assert memory_gib(Profile()) == Profile().needs.memory_gib


def test_a_larger_model_and_longer_answers_need_more() -> None:
    large = Profile(
        tiny_model=TinyModel(hidden=1024, layers=12, heads=16),
        training=Training(answer_tokens=1000),
    )
    assert memory_gib(large) > memory_gib(Profile()) + 5


def test_a_hub_model_of_unknown_shape_needs_what_the_profile_says() -> None:
    assert memory_gib(Profile(base="nobody/nothing")) == Profile().needs.memory_gib


def test_an_engine_on_gpus_without_gpus_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        NotReady, match="engine vllm with 1 ranks needs as many GPUs, nvidia-smi lists 0"
    ):
        check_machines(load_profile("gpu"))


def test_a_training_that_is_submitted_elsewhere_needs_no_gpu_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    check_machines(load_profile("cluster"))


def test_what_does_not_fit_on_the_gpus_here_is_refused_with_the_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listing(tmp_path, monkeypatch, "0, GPU-5a1, NVIDIA GeForce RTX 2080, 8192\\n")
    assert [gpu.memory for gpu in gpus_here()] == [8 * 2**30]
    with pytest.raises(
        NotReady, match=r"0.5B-Instruct does not fit on 1 x NVIDIA GeForce RTX 2080 \(8 GiB each"
    ):
        check_machines(load_profile("gpu"))


@pytest.mark.parametrize(
    ("visible", "gibibytes"),
    [
        (None, [8, 16, 24]),
        ("2,0", [8, 24]),
        ("", []),
        ("-1", []),
        ("1,-1,0", [16]),
        ("GPU-7c", [24]),
        ("GPU-5a1, GPU-7c2", [8, 24]),
        ("3", []),
    ],
)
def test_only_the_gpus_count_that_a_person_lets_be_seen(
    visible: str | None, gibibytes: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listing(
        tmp_path,
        monkeypatch,
        "0, GPU-5a1, A, 8192\\n1, GPU-6b0, B, 16384\\n2, GPU-7c2, C, 24576\\n",
    )
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert [gpu.memory // 2**30 for gpu in gpus_here()] == gibibytes


def test_gpus_that_are_hidden_are_named_where_too_few_are_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listing(tmp_path, monkeypatch, "0, GPU-5a1, A, 8192\\n")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    with pytest.raises(
        NotReady, match="nvidia-smi lists 0 of those that CUDA_VISIBLE_DEVICES=3 names"
    ):
        check_machines(load_profile("gpu"))


def test_several_nodes_want_a_ray_that_has_them() -> None:
    with pytest.raises(
        NotReady, match=r"training\.scale\.nodes 2: a Ray of this machine's own has one node"
    ):
        check_machines(Profile(training=Training(ranks=2, scale=Scale(nodes=2))))


KUBERNETES = Orchestration(
    launcher="kubernetes", kubernetes=Kubernetes(namespace="n", service_account="s")
)
UNKNOWN = {"base": "nobody/nothing"}
ON_GPUS = {"training": Training(engine="vllm")}


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({}, ""),
        (ON_GPUS, ""),
        (
            {"ray": RayPlace(address="http://head:8265")},
            "what http://head:8265 has is not known here.",
        ),
        (
            ON_GPUS | {"ray": RayPlace(address="http://head:8265")},
            "what http://head:8265 has is not known here: `ratchet plan --gpus 8xH100`",
        ),
        (
            ON_GPUS | {"orchestration": KUBERNETES},
            "what Kubernetes has is not known here: `ratchet plan",
        ),
        (
            UNKNOWN,
            "no shape is known of 'nobody/nothing' before it is fetched; needs.memory_gib of the profile was taken",
        ),
        (
            UNKNOWN | ON_GPUS,
            "no shape is known of 'nobody/nothing' before it is fetched; it is asked then.",
        ),
        (
            {"training": Training(engine="vllm", scale=Scale(megatron=Megatron()))},
            "the planner knows FSDP2 with trainer and engine on the same",
        ),
    ],
)
def test_why_the_planner_was_not_asked_is_one_line(told: dict[str, Any], said: str) -> None:
    line = unasked(Profile(**told))
    assert bool(line) == bool(said) and "\n" not in line
    assert line.startswith(f"Whether this training fits was not asked: {said}" if said else "")


def test_a_fetched_model_of_another_kind_is_said_to_be_one(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}', encoding="utf-8")
    assert unasked(Profile(base=str(tmp_path))).endswith(
        f"{tmp_path}/config.json is of no kind that the planner knows."
    )


def test_a_machine_without_gpus_may_prepare_for_one_that_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert (
        check_fetched(load_profile("gpu"), tmp_path)
        == "Whether this training fits was not asked: this machine has no GPU."
    )


def test_slices_of_a_gpu_are_not_asked_and_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listing(tmp_path, monkeypatch, "0, GPU-5a1, NVIDIA A100, 81920\\n")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "MIG-7c3")
    check_machines(load_profile("gpu"))
    assert "the slices of CUDA_VISIBLE_DEVICES" in unasked(load_profile("gpu"))


def test_a_driver_that_does_not_answer_lists_no_gpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listing(
        tmp_path,
        monkeypatch,
        "NVIDIA-SMI has failed because it could not communicate with the NVIDIA driver.\\n",
    )
    assert gpus_here() == []


@pytest.mark.parametrize(
    "apart",
    [
        {"placement": "separate_async", "engine_gpus": 1},
        {"distillation": {"teacher": "Qwen/Qwen2.5-Coder-7B"}},
    ],
)
def test_gpus_beside_the_ranks_need_a_ray_that_has_them(
    apart: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listing(tmp_path, monkeypatch, "0, GPU-5a1, A, 81920\\n1, GPU-6b0, A, 81920\\n")
    gpu = load_profile("gpu")
    asked = gpu.model_copy(
        update={"training": gpu.training.model_copy(update={"scale": Scale.model_validate(apart)})}
    )
    with pytest.raises(NotReady, match="take GPUs beside the ranks'"):
        check_machines(asked)
    check_machines(asked.model_copy(update={"ray": RayPlace(address="http://127.0.0.1:8265")}))
