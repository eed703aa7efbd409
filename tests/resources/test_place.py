"""The place of a training, and the planner's check before it resumes on this machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from resources.config.infrastructure import RayPlace
from resources.config.load import load_profile
from resources.config.profile import Profile
from resources.home import Home, NotReady
from resources.ray.place import ranks_here, ray_of
from resources.ray.private import Joined, Private
from tests.resources.test_capacity import listing
from tests.verl_jobs.test_job import a_job
from verl_jobs.config.scale import ScaleSettings
from verl_jobs.config.training import Training


def test_a_joined_ray_falls_back_to_this_machine(tmp_path: Path) -> None:
    profile = Profile(ray=RayPlace(address="http://head:8265"))
    job = a_job(tmp_path)
    assert isinstance(ray_of(Home(tmp_path), Profile(), job), Private)
    ray = ray_of(Home(tmp_path), profile, job)
    assert isinstance(ray, Joined)
    assert ray.patience_s == 120
    assert ray.here is not None
    assert ray.submission()["runtime_env"]["env_vars"]["RATCHET_PATIENCE_S"] == "120.0"


def test_cpu_ranks_resume_on_one_node(tmp_path: Path) -> None:
    # No memory is required, because other processes may run on this machine.
    needs = Profile().needs.model_copy(update={"memory_gib": 0.0})
    profile = Profile(
        training=Training(ranks=2, scale=ScaleSettings(nodes=2)),
        ray=RayPlace(address="http://head:8265"),
        needs=needs,
    )
    assert ranks_here(Home(tmp_path), profile) == 2


def test_ranks_are_limited_by_the_local_gpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listing(tmp_path, monkeypatch, "0, GPU-1, NVIDIA H100, 81920\\n1, GPU-2, NVIDIA H100, 81920\\n")
    gpus = load_profile("gpu")
    training = gpus.training.model_copy(update={"ranks": 8, "scale": ScaleSettings(nodes=2)})
    needs = gpus.needs.model_copy(update={"memory_gib": 0.0})
    assert (
        ranks_here(Home(tmp_path), gpus.model_copy(update={"training": training, "needs": needs}))
        == 2
    )


def test_a_machine_without_enough_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crowded = Profile(needs=Profile().needs.model_copy(update={"memory_gib": 1e6}))
    with pytest.raises(NotReady, match=r"memory.*1e\+06"):
        ranks_here(Home(tmp_path), crowded)
    listing(tmp_path, monkeypatch, "0, GPU-1, NVIDIA GeForce RTX 2080, 8192\\n")
    gpus = load_profile("gpu")
    with pytest.raises(NotReady, match="1 x NVIDIA GeForce RTX 2080"):
        ranks_here(
            Home(tmp_path),
            gpus.model_copy(update={"needs": gpus.needs.model_copy(update={"memory_gib": 0.0})}),
        )


def test_the_planner_checks_the_folder_of_the_start_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The profile names an unknown hub model; the fetched model has 7 billion parameters."""
    listing(tmp_path, monkeypatch, "0, GPU-1, NVIDIA H100, 81920\\n")
    about = {
        "model_type": "qwen2",
        "vocab_size": 152_064,
        "hidden_size": 3584,
        "num_hidden_layers": 28,
        "intermediate_size": 18_944,
    }
    (tmp_path / "config.json").write_text(
        json.dumps(about | {"num_attention_heads": 28, "num_key_value_heads": 4}), encoding="utf-8"
    )
    gpus = load_profile("gpu")
    needs = gpus.needs.model_copy(update={"memory_gib": 0.0})
    joined = gpus.model_copy(
        update={
            "base": "nobody/nothing",
            "needs": needs,
            "ray": RayPlace(address="http://head:8265"),
        }
    )
    ray = ray_of(Home(tmp_path), joined, a_job(tmp_path, start=str(tmp_path)))
    assert isinstance(ray, Joined)
    assert ray.here is not None
    with pytest.raises(NotReady, match="1 x NVIDIA H100"):
        ray.here()
