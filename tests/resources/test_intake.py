"""A checkpoint from the inbox is copied, hashed and never executed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save
from tokenizers import Tokenizer, models

from artifacts.store import Store
from resources.home import Home
from resources.intake import NoCheckpoint, fingerprint, import_checkpoint, waiting


def folder(path: Path, **config: object) -> Path:
    """Make a folder that looks like one of Hugging Face."""
    path.mkdir(parents=True)
    (path / "config.json").write_text(
        json.dumps({"model_type": "qwen2"} | config), encoding="utf-8"
    )
    (path / "model.safetensors").write_bytes(save({"weight": np.zeros(2, np.float32)}))
    (path / "tokenizer.json").write_text(Tokenizer(models.BPE()).to_str(), encoding="utf-8")
    (path / "modeling.py").write_text("raise SystemExit('never run')", encoding="utf-8")
    return path


def test_the_copy_is_verified_and_contains_no_code(tmp_path: Path) -> None:
    store = Store(tmp_path / "home")
    checkpoint = import_checkpoint(store, folder(tmp_path / "my model"))
    store.verify(checkpoint)
    assert checkpoint.manifest.name.startswith("my-model-")
    assert not list(checkpoint.path.glob("*.py"))


def test_equal_content_is_stored_once(tmp_path: Path) -> None:
    store, put = Store(tmp_path / "home"), folder(tmp_path / "mine")
    first = import_checkpoint(store, put)
    assert import_checkpoint(store, put) == first
    (put / "model.safetensors").write_bytes(save({"weight": np.ones(2, np.float32)}))
    assert import_checkpoint(store, put).manifest.name != first.manifest.name


@pytest.mark.parametrize(
    ("lacking", "message"),
    [
        ("config.json", "no config.json"),
        ("model.safetensors", "pickled weights"),
        ("tokenizer.json", "no tokenizer"),
    ],
)
def test_an_incomplete_checkpoint_is_refused(tmp_path: Path, lacking: str, message: str) -> None:
    put = folder(tmp_path / "mine")
    (put / lacking).unlink()
    with pytest.raises(NoCheckpoint, match=message):
        import_checkpoint(Store(tmp_path / "home"), put)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("model.safetensors", b"\x93 random bytes \xff"),
        ("model.safetensors", save({"weight": np.zeros(99)})[:-8]),
        ("tokenizer.json", b"{}"),
        ("tokenizer.json", b"\xff"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_by_name(
    tmp_path: Path, file: str, content: bytes
) -> None:
    put = folder(tmp_path / "mine")
    (put / file).write_bytes(content)
    with pytest.raises(NoCheckpoint, match=re.escape(str(put / file))):
        import_checkpoint(Store(tmp_path / "home"), put)


@pytest.mark.parametrize("text", ["5", "[]", "{", "\x00"])
def test_a_config_that_is_no_object_is_refused(tmp_path: Path, text: str) -> None:
    put = folder(tmp_path / "mine")
    (put / "config.json").write_text(text)
    with pytest.raises(NoCheckpoint, match=r"config\.json: no JSON object"):
        import_checkpoint(Store(tmp_path / "home"), put)


def test_a_checkpoint_with_custom_code_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NoCheckpoint, match="auto_map"):
        import_checkpoint(
            Store(tmp_path / "home"),
            folder(tmp_path / "mine", auto_map={"AutoModel": "modeling.Evil"}),
        )


def test_artifacts_of_the_store_are_not_read_as_inbox_folders(tmp_path: Path) -> None:
    home = Home(tmp_path)
    checkpoint = import_checkpoint(Store(home.path), folder(home.inbox / "a"))
    assert checkpoint.path.is_dir()
    assert waiting(home) == [home.inbox / "a"]


def test_an_unfinished_copy_changes_the_fingerprint(tmp_path: Path) -> None:
    put = folder(tmp_path / "mine")
    before = fingerprint(put)
    with (put / "model.safetensors").open("ab") as file:
        file.write(b"more")
    assert fingerprint(put) != before
