"""`ratchet plan` prints settings that load and fit, and refuses other plans with the numbers."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from cli import main as cli
from cli.display.lengths import show_lengths
from cli.lookup.gpus import gpus_of
from cli.plan import command, over_machines, show_plan
from pipelines.launch import prepare_run
from problems.catalogue import add_source
from problems.embedded.compositional import generate
from problems.embedded.settings import FamilyConfig
from problems.prompt import prompt_text
from problems.schema import Problem, write_parquet
from resources.config.load import load_profile
from resources.settings import Settings
from verl_jobs.config.scale import ScaleSettings
from verl_jobs.config.training import Training
from verl_jobs.planner.fit import check_fit
from verl_jobs.planner.shapes import GPUS, DoesNotFit, shape_of

SEVEN = "Qwen/Qwen2.5-Coder-7B"


def planned(
    gpus: str, model: str | None = SEVEN, profile: str = "gpu", *changed: str
) -> tuple[int, str]:
    console = Console(file=StringIO(), width=140)
    try:
        return show_plan(model, gpus, Settings.read(profile, changed), console), written(console)
    except (DoesNotFit, typer.BadParameter) as error:
        code, message = cli.report(error) or (None, "")
        assert code is not None
        return code, message


def written(console: Console) -> str:
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert isinstance(text, str)
    return text


def changes(output: str) -> list[str]:
    """Return the settings that the output recommends for `--set`."""
    return [shlex.split(line)[1] for line in output.splitlines() if line.startswith("  --set ")]


def test_a_plan_shows_the_seconds_of_each_stage_of_a_length_curriculum() -> None:
    stages = "training.answer_stages=[{until: 100, tokens: 4096}, {until: 200, tokens: 8192}]"
    code, output = planned("8xA100-80", None, "gpu-8x80gb", stages)
    _, constant = planned("8xA100-80", None, "gpu-8x80gb")
    assert code == 0
    steps = re.findall(r"Steps (\d+) to (\d+), at most ([\d,]+) tokens .*: ([\d.]+) s a", output)
    assert [each[:3] for each in steps] == [("1", "100", "4,096"), ("101", "200", "8,192")]
    [total] = re.findall(r"total +(\d+\.\d), ", output)
    assert float(steps[0][3]) < float(steps[1][3]) < float(total)
    memory = r"total +\d+\.\d of 80 +\d+\.\d of 80"
    assert re.findall(memory, output) == re.findall(memory, constant)


def test_a_plan_shows_memory_seconds_and_settings() -> None:
    code, output = planned("8xH100")
    phases = (
        r"GiB a GPU +update +rollout",
        r"activations +\d",
        r"KV cache +\d",
        r"total +\d+\.\d of 80 +\d+\.\d of 80",
    )
    seconds = (
        r"seconds a step",
        r"rollout +\d",
        r"update +\d",
        r"total +\d+\.\d, [\d,]+ tokens/s",
    )
    assert code == 0, output
    assert all(re.search(part, output) for part in (*phases, *seconds)), output
    assert [line.split("=")[0] for line in changes(output)] == [
        "base",
        "training.ranks",
        "training.scale.micro_batch_tokens",
        "training.scale.tensor_parallel",
        "training.scale.offload",
        "training.scale.sequence_parallel",
        "training.scale.shards",
        "training.scale.accumulation",
    ]


@pytest.mark.parametrize(
    "gpus", ["1xH200", "2xA100-80", "4xL40S", "6xH100", "8xH100", "8xRTX4090", "16xH100"]
)
@pytest.mark.parametrize(
    ("profile", "model"),
    [
        ("gpu", None),
        ("cluster", None),
        ("gpu", SEVEN),
        ("embedded", SEVEN),
        ("small", "Qwen/Qwen2.5-Coder-0.5B"),
        ("gpu", "Qwen/Qwen2.5-Coder-32B"),
    ],
)
def test_the_settings_of_a_plan_load_and_fit(profile: str, model: str | None, gpus: str) -> None:
    code, output = planned(gpus, model, profile)
    if code:
        assert "GiB" in output or f"{gpus[0]} ranks" in output
        return
    loaded = load_profile(profile, changes(output))
    assert loaded.base == (model or load_profile(profile).base)
    assert loaded.training.engine != "hf"
    check_fit(shape_of(loaded.base), gpus_of(gpus)[1], loaded.training)


def test_a_plan_of_changed_settings_repeats_them() -> None:
    code, output = planned("8xH100", SEVEN, "gpu", "training.answer_tokens=16384")
    assert code == 0
    assert "512 + 16384 tokens" in output
    assert "training.answer_tokens=16384" in changes(output)


@pytest.mark.parametrize("profile", ["gpu", "cluster"])
def test_a_plan_is_for_the_profiles_own_gpus(
    profile: str, capsys: pytest.CaptureFixture[str]
) -> None:
    loaded = load_profile(profile)
    check_fit(shape_of(loaded.base), GPUS[loaded.needs.gpu], loaded.training)
    with pytest.raises(typer.Exit) as end:
        command(profile=profile)
    assert end.value.exit_code == 0
    assert f"on {loaded.training.ranks} x {loaded.needs.gpu}" in capsys.readouterr().out


@given(gpus=st.integers(1, 512), configured=st.integers(1, 64))
def test_gpus_are_spread_over_machines_of_at_most_eight(gpus: int, configured: int) -> None:
    nodes = over_machines(
        Training().model_copy(update={"scale": ScaleSettings(nodes=configured)}), gpus
    ).scale.nodes
    assert gpus % nodes == 0
    assert gpus // nodes <= 8
    assert nodes == configured or gpus % configured or gpus // configured > 8


def test_sixteen_gpus_are_two_machines() -> None:
    code, output = planned("16xH100")
    assert code == 0
    assert "on 16 x H100 in 2 machines of 8;" in output
    assert {"training.ranks=16", "training.scale.nodes=2"} <= set(changes(output))
    assert not [line for line in changes(planned("8xH100")[1]) if "nodes" in line]


@pytest.mark.parametrize(
    ("setting", "pattern"),
    [
        ("algorithm=ppo", r"critic's values +\d+\.\d.*\n critic's update +\d+\.\d"),
        ("algorithm=remax", r"32 problems x 16 completions and a greedy one, 512 \+ 512 tokens"),
        (
            "algorithm=dapo",
            r"dapo.*groups.*\b3 batches",
        ),
        (
            "agents={trains: generator, turns: 3, tokens: 1536}",
            r"32 problems x 16 completions, 512 \+ 1536 tokens",
        ),
    ],
)
def test_extra_costs_of_algorithms_and_conversations_are_shown(
    setting: str, pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RATCHET_SET", f"training.{setting}")
    code, page = planned("8xH100")
    assert code == 0, page
    assert re.search(pattern, page), page


def test_a_model_needs_an_engine_size_that_divides_the_gpus(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Four of these GPUs hold the 14B model; six GPUs cannot be divided into engines of four."""
    monkeypatch.setenv("RATCHET_SET", "training.problems_per_step=48")
    (six, refused), (eight, _) = (
        planned(gpus, "Qwen/Qwen2.5-Coder-14B") for gpus in ("6xL40S", "8xL40S")
    )
    assert (six, eight) == (1, 0)
    assert "27.5 GiB" in refused


def test_a_model_that_does_not_fit_is_refused() -> None:
    code, output = planned("1xRTX4090")
    assert code == 1, output
    assert re.search(
        r"7B.*1 x RTX4090 \(24 GiB.*\d+\.\d GiB.*optimizer \d+\.\d",
        output,
    ), output


def test_unknown_gpus_are_refused_with_the_known_names() -> None:
    code, output = planned("9xZ80")
    assert code == 2
    assert "'9xZ80'" in output
    assert all(name in output for name in ("RTX4090", "H100", "B200"))


def test_a_step_that_does_not_divide_among_gpus_is_refused() -> None:
    code, output = planned("3xH100")
    assert code == 1
    assert re.search(r"3 x H100.*\b32 problems.*\b16 .*\b3 ranks", output)


@pytest.fixture(scope="module")
def problems() -> list[Problem]:
    return generate(FamilyConfig(demonstrations=1, train=60, validation=4))


@pytest.fixture(scope="module")
def measured(
    problems: list[Problem], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Path]:
    """Return a Parquet file of problems and the folder of a tiny model."""
    from verl_jobs.sft.tiny_model import TinyModel, make

    folder = tmp_path_factory.mktemp("measured")
    write_parquet(problems, folder / "problems.parquet")
    make(
        TinyModel(hidden=32, layers=1),
        [text for problem in problems for text in (prompt_text(problem), problem.solutions[0])],
        folder / "model",
    )
    return folder / "problems.parquet", folder / "model"


@pytest.mark.slow
def test_a_training_uses_the_measured_length_limits(
    measured: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data, model = measured
    console = Console(file=StringIO(), width=200)
    monkeypatch.setenv("RATCHET_SET", f"base={model}")
    assert (
        show_lengths(
            str(data),
            run=None,
            share=0.99,
            model=None,
            gpus=None,
            settings=Settings.read("embedded"),
            console=console,
        )
        == 0
    )
    limits = re.findall(r"--set training\.\w+=(\d+)", written(console))
    monkeypatch.setattr(
        sys, "argv", ["ratchet", "train", "--profile", "embedded", "--lengths", str(data), "--show"]
    )
    with pytest.raises(SystemExit) as ended:
        cli.main()
    output = capsys.readouterr().out
    assert ended.value.code == 0
    assert "training.prompt_tokens=" in output
    assert f"data.max_prompt_length={limits[0]}" in output
    assert f"data.max_response_length={limits[1]}" in output


@pytest.mark.slow
def test_completions_that_exceed_the_kv_cache_are_refused(
    measured: tuple[Path, Path], tmp_path: Path
) -> None:
    """The model has the tokenizer of the tiny one and the shape of a large one."""
    data, model = measured
    shutil.copytree(model, tmp_path / "large")
    config = json.loads((model / "config.json").read_text())
    large: dict[str, Any] = {
        "hidden_size": 3584,
        "num_hidden_layers": 28,
        "num_attention_heads": 28,
        "num_key_value_heads": 4,
        "intermediate_size": 18_944,
    }
    large |= {"layer_types": ["full_attention"] * 28}
    (tmp_path / "large" / "config.json").write_text(json.dumps(config | large))
    console, settings = Console(file=StringIO(), width=140), Settings.read("gpu")
    fits = partial(
        show_lengths,
        str(data),
        run=None,
        share=0.99,
        model=str(tmp_path / "large"),
        settings=settings,
        console=console,
    )
    assert fits(gpus="8xH100") == 0
    assert re.search(r"99%(.|\n)*8 x H100 hold [\d,]+", written(console)), written(console)
    with pytest.raises(DoesNotFit, match=r"\d+ \+ \d+ tokens.*1 x RTX4090 \(24 GiB"):
        fits(gpus="1xRTX4090")


def test_an_unknown_model_shape_is_reported_before_a_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RATCHET_HOME", str(tmp_path))
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    monkeypatch.setenv(
        "RATCHET_SET", "base=nobody/nothing\nneeds.memory_gib=0.1\nneeds.disk_gib=0.1"
    )
    add_source(tmp_path, "simple", None)
    prepare_run(Settings.read("embedded"))
    output = capsys.readouterr().err.splitlines()
    assert len(output) == 1
    assert "'nobody/nothing'" in output[0]
