"""A base model that cannot be downloaded, or does not fit, is reported with its profile key."""

import re
from pathlib import Path

import dagster as dg
import pytest

from assets.base_model import base_model, snapshot
from resources.home import Home, NotReady
from resources.run_context import RunContext
from resources.settings import Settings
from tests.resources.test_capacity import listing
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
