"""A base model that cannot be downloaded, or does not fit, is reported with its profile key."""

import re
from pathlib import Path

import dagster as dg
import pytest

from assets.base_model import base_model, licence_of, snapshot
from resources.home import Home, NotReady
from resources.run_context import RunContext
from resources.settings import Settings
from tests.resources.test_capacity import listing
from verl_jobs.gguf.source import GgufSource
from verl_jobs.sft.tiny_model import TinyModel, make


@pytest.mark.parametrize(
    "hub_id", ["ratchet-tests/there-is-no-such-model", "three/parts/are too many"]
)
def test_a_bad_hub_id_is_reported_with_its_profile_key(
    hub_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # An unreachable hub: nothing listens on this port.
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(NotReady, match="profile key base: ") as raised:
        snapshot(hub_id, "profile key base")
    assert hub_id in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.slow
@pytest.mark.parametrize(("mebibytes", "fits"), [(81_920, True), (4_096, False)])
def test_an_unknown_hub_model_is_checked_after_its_download(
    mebibytes: int,
    fits: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    make(TinyModel(hidden=32, layers=1), ["sort the list"], tmp_path / "fetched")
    monkeypatch.setattr("assets.base_model.snapshot", lambda *_: tmp_path / "fetched")
    listing(tmp_path, monkeypatch, f"0, GPU-1, NVIDIA H100, {mebibytes}\\n")
    (tmp_path / "profile.yaml").write_text(
        "{base: nobody/nothing, training: {engine: vllm}}", encoding="utf-8"
    )
    run_context = RunContext.of(Settings(Home(tmp_path / "home"), str(tmp_path / "profile.yaml")))
    result = dg.materialize(
        [base_model],
        resources=run_context.resources,
        tags={"ratchet/kind": "study"},
        raise_on_error=False,
    )
    assert result.success == fits
    assert (bool(re.search("4 GiB.*NVIDIA H100", capfd.readouterr().err))) != fits


def _materialized(home: Path, base: str) -> dg.ExecuteInProcessResult:
    home.parent.mkdir(exist_ok=True)
    profile = home.parent / "profile.yaml"
    profile.write_text(f"base: {base}", encoding="utf-8")
    run_context = RunContext.of(Settings(Home(home), str(profile)))
    return dg.materialize(
        [base_model],
        resources=run_context.resources,
        tags={"ratchet/kind": "study"},
        raise_on_error=False,
    )


@pytest.mark.slow
def test_a_gguf_file_becomes_an_artifact_with_its_origin(tmp_path: Path) -> None:
    from tests.verl_jobs.gguf_files import tiny_llama, write

    file = write(tmp_path / "tiny.gguf", *tiny_llama(max_position_embeddings=1024))
    assert _materialized(tmp_path / "home", f"gguf:{file}").success
    artifact = Home(tmp_path / "home").store().require("checkpoints", "base_model")
    assert artifact.manifest.inputs == {"gguf": GgufSource(file).sha256()}
    assert artifact.manifest.facts["origin"] == {"file": "tiny.gguf"}
    assert artifact.manifest.facts["licence"] == "mit"
    assert artifact.manifest.facts["quantization"] == "F32"


def test_a_missing_package_is_reported_with_its_profile_key(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert not _materialized(tmp_path / "home", "package:no-such-package").success
    assert "profile key base: 'package:no-such-package'" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("card", "licence"),
    [("---\nlicense: apache-2.0\n---\nA model.", "apache-2.0"), ("A model.", "not stated")],
)
def test_the_licence_of_a_folder_is_that_of_its_card(
    card: str, licence: str, tmp_path: Path
) -> None:
    (tmp_path / "README.md").write_text(card)
    assert licence_of(tmp_path) == licence
    assert licence_of(tmp_path / "without a card") == "not stated"
