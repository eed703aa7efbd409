"""`ratchet doctor` names what a profile lacks on this machine, and what to do."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from cli.doctor import show_doctor
from resources.config.load import load_profile
from resources.config.profile import Profile
from resources.doctor import findings
from resources.finding import Finding
from resources.home import Home
from resources.settings import Settings
from tests.resources.test_capacity import listing


def found(home: Path, profile: Profile) -> dict[str, Finding]:
    needs = profile.needs.model_copy(update={"disk_gib": 0.0, "memory_gib": 0.0})
    update = {"needs": needs}
    return {each.part: each for each in findings(Home(home), profile.model_copy(update=update))}


def test_a_cpu_profile_lacks_nothing_that_it_needs(tmp_path: Path) -> None:
    parts = found(tmp_path, Profile())
    assert not [part for part, finding in parts.items() if finding.blocks]
    assert {"isolation", "cgroups", "user namespaces", "disk", "memory"} <= parts.keys()


def test_each_missing_part_of_a_gpu_host_has_a_mend(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    parts = found(tmp_path, load_profile("gpu"))
    assert {part for part, finding in parts.items() if finding.blocks} == {
        "engine", "driver", "GPUs", "CUDA in torch", "layout"
    }  # fmt: skip
    assert "No module named 'vllm'" in parts["engine"].found
    assert "--gpus all" in parts["driver"].fix


def test_only_sequence_parallelism_is_blocked_without_flash_attention(tmp_path: Path) -> None:
    [torch_s_own, none] = [
        found(tmp_path, load_profile(name))["attention kernels"] for name in ("gpu", "cluster-32b")
    ]
    assert "torch's own" in torch_s_own.found
    assert "flash-attn" in torch_s_own.fix
    assert not torch_s_own.blocks
    assert none.blocks
    assert "sequence_parallel=1 (now 8)" in none.fix


def test_gpus_are_listed_with_their_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listing(tmp_path, monkeypatch, "0, GPU-1, NVIDIA H100, 81559\\n")
    assert found(tmp_path, load_profile("gpu"))["GPUs"].found == "NVIDIA H100 (80 GiB)"


def test_a_disk_that_is_too_small_blocks(tmp_path: Path) -> None:
    profile = Profile()
    needs = profile.needs.model_copy(update={"disk_gib": 1e9, "memory_gib": 0.0})
    [disk] = [
        each
        for each in findings(Home(tmp_path), profile.model_copy(update={"needs": needs}))
        if each.part == "disk"
    ]
    assert disk.blocks
    assert "RATCHET_HOME" in disk.fix


def test_the_command_exits_1_where_the_profile_cannot_train(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RATCHET_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    console = Console(file=StringIO(), width=200)
    assert show_doctor(Settings.read("gpu"), console) == 1
    page = console.file.getvalue()  # type: ignore[attr-defined]
    assert "The profile gpu cannot train here: engine," in page
