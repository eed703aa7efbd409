"""Too little memory and too few GPUs are reported before a start, with the numbers."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from ray.dashboard.utils import to_google_style

from resources.capacity import check_fetched, check_machines, gpus_here, memory_gib, not_checked
from resources.config.infrastructure import Kubernetes, Orchestration, RayPlace
from resources.config.load import load_profile
from resources.config.profile import Profile
from resources.home import NotReady
from verl_jobs.config.scale import Megatron, ScaleSettings
from verl_jobs.config.training import Training
from verl_jobs.sft.tiny_model import TinyModel


def listing(folder: Path, monkeypatch: pytest.MonkeyPatch, lines: str) -> None:
    """Put an `nvidia-smi` that prints these lines into PATH."""
    program = folder / "nvidia-smi"
    program.write_text(f"#!/bin/sh\nprintf '{lines}'\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def test_the_default_profile_needs_its_measured_memory() -> None:
    assert memory_gib(Profile()) == Profile().needs.memory_gib


def test_a_larger_model_and_longer_completions_need_more() -> None:
    large = Profile(
        tiny_model=TinyModel(hidden=1024, layers=12, heads=16),
        training=Training(answer_tokens=1000),
    )
    assert memory_gib(large) > memory_gib(Profile()) + 5


def test_an_unknown_hub_model_needs_the_memory_of_the_profile() -> None:
    assert memory_gib(Profile(base="nobody/nothing")) == Profile().needs.memory_gib


def test_an_engine_on_gpus_without_gpus_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotReady, match=r"engine vllm.*\b1 ranks.*nvidia-smi lists 0"):
        check_machines(load_profile("gpu"))


def test_a_remote_training_needs_no_local_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    check_machines(load_profile("cluster"))


def test_a_model_that_exceeds_the_local_gpus_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listing(tmp_path, monkeypatch, "0, GPU-5a1, NVIDIA GeForce RTX 2080, 8192\\n")
    assert [gpu.memory for gpu in gpus_here()] == [8 * 2**30]
    with pytest.raises(NotReady, match=r"0\.5B-Instruct.*1 x NVIDIA GeForce RTX 2080 \(8 GiB"):
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
def test_only_visible_gpus_count(
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


def test_hidden_gpus_are_named_if_too_few_remain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listing(tmp_path, monkeypatch, "0, GPU-5a1, A, 8192\\n")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    with pytest.raises(NotReady, match=r"nvidia-smi lists 0\b.*CUDA_VISIBLE_DEVICES=3"):
        check_machines(load_profile("gpu"))


def test_several_nodes_need_a_joined_ray() -> None:
    with pytest.raises(NotReady, match=r"training\.scale\.nodes.*\b2\b"):
        check_machines(Profile(training=Training(ranks=2, scale=ScaleSettings(nodes=2))))


KUBERNETES = Orchestration(
    launcher="kubernetes", kubernetes=Kubernetes(namespace="n", service_account="s")
)
UNKNOWN = {"base": "nobody/nothing"}
ON_GPUS = {"training": Training(engine="vllm")}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, ""),
        (ON_GPUS, ""),
        ({"ray": RayPlace(address="http://head:8265")}, "http://head:8265"),
        (
            ON_GPUS | {"ray": RayPlace(address="http://head:8265")},
            r"http://head:8265.*needs\.gpu",
        ),
        (ON_GPUS | {"orchestration": KUBERNETES}, r"Kubernetes.*needs\.gpu"),
        (UNKNOWN, r"'nobody/nothing'.*needs\.memory_gib"),
        (UNKNOWN | ON_GPUS, "'nobody/nothing'"),
        ({"training": Training(engine="vllm", scale=ScaleSettings(megatron=Megatron()))}, "FSDP2"),
    ],
)
def test_the_reason_for_skipping_the_planner_is_one_line(
    changes: dict[str, Any], reason: str
) -> None:
    line = not_checked(Profile(**changes))
    assert bool(line) == bool(reason)
    assert "\n" not in line
    assert re.search(reason, line)


def test_a_fetched_model_of_an_unknown_kind_is_reported(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}', encoding="utf-8")
    assert f"{tmp_path}/config.json" in not_checked(Profile(base=str(tmp_path)))


def test_a_machine_without_gpus_may_prepare_a_gpu_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "no GPU" in check_fetched(load_profile("gpu"), tmp_path)


def test_mig_slices_are_not_planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listing(tmp_path, monkeypatch, "0, GPU-5a1, NVIDIA A100, 81920\\n")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "MIG-7c3")
    check_machines(load_profile("gpu"))
    assert "CUDA_VISIBLE_DEVICES" in not_checked(load_profile("gpu"))


def test_a_failing_driver_lists_no_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listing(
        tmp_path,
        monkeypatch,
        "NVIDIA-SMI has failed because it could not communicate with the NVIDIA driver.\\n",
    )
    assert gpus_here() == []


@contextmanager
def dashboard(nodes: list[dict[str, Any]]) -> Iterator[str]:
    """Serve nodes as Ray's dashboard does, which writes its keys in camel case."""
    body = json.dumps(to_google_style({"data": {"summary": nodes}})).encode()

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/nodes?view=summary" else 404)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


def test_the_gpus_of_a_joined_ray_are_checked() -> None:
    gpu = load_profile("gpu")
    small = {"gpus": [{"name": "NVIDIA GeForce RTX 2080", "memory_total": 8192}]}
    dead = {"gpus": [{"name": "A", "memory_total": 1}], "raylet": {"state": "DEAD"}}
    large = {"gpus": [{"name": "NVIDIA H100", "memory_total": 81559}]}
    with dashboard([small, large]) as address:
        joined = gpu.model_copy(update={"ray": RayPlace(address=address)})
        with pytest.raises(NotReady, match=r"1 x NVIDIA GeForce RTX 2080 \(8 GiB"):
            check_machines(joined)
    with dashboard([dead, large]) as address:
        joined = gpu.model_copy(update={"ray": RayPlace(address=address)})
        check_machines(joined)
        assert not not_checked(joined)


def test_a_ray_that_lists_no_gpus_is_checked_for_the_profiles_own() -> None:
    gpu = load_profile("gpu")
    large = gpu.model_copy(update={"base": "Qwen/Qwen2.5-Coder-7B"})
    with dashboard([{"gpus": []}]) as address, pytest.raises(NotReady, match="1 x RTX4090"):
        check_machines(large.model_copy(update={"ray": RayPlace(address=address)}))


@pytest.mark.parametrize(
    "apart",
    [
        {"placement": "separate_async", "engine_gpus": 1},
        {"distillation": {"teacher": "Qwen/Qwen2.5-Coder-7B"}},
    ],
)
def test_extra_gpus_need_a_joined_ray(
    apart: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listing(tmp_path, monkeypatch, "0, GPU-5a1, A, 81920\\n1, GPU-6b0, A, 81920\\n")
    gpu = load_profile("gpu")
    profile = gpu.model_copy(
        update={
            "training": gpu.training.model_copy(
                update={"scale": ScaleSettings.model_validate(apart | {"micro_batch_tokens": 4096})}
            )
        }
    )
    with pytest.raises(NotReady, match="GPUs"):
        check_machines(profile)
    check_machines(profile.model_copy(update={"ray": RayPlace(address="http://127.0.0.1:8265")}))
