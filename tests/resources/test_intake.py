"""A checkpoint put by hand is copied, hashed and never executed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from artifacts.store import Store
from resources.home import Home
from resources.intake import NoCheckpoint, fingerprint, take_in, waiting


def folder(path: Path, **config: object) -> Path:
    """Looks like a Hugging Face folder."""
    path.mkdir(parents=True)
    (path / "config.json").write_text(
        json.dumps({"model_type": "qwen2"} | config), encoding="utf-8"
    )
    (path / "model.safetensors").write_bytes(b"weights")
    (path / "tokenizer.json").write_text("{}", encoding="utf-8")
    (path / "modeling.py").write_text("raise SystemExit('never run')", encoding="utf-8")
    return path


def test_the_copy_is_whole_verified_and_without_code(tmp_path: Path) -> None:
    store = Store(tmp_path / "home")
    made = take_in(store, folder(tmp_path / "my model"))
    store.verify(made)
    assert made.manifest.name.startswith("my-model-") and not list(made.path.glob("*.py"))


def test_the_same_content_is_taken_in_once_and_another_gets_another_name(tmp_path: Path) -> None:
    store, put = Store(tmp_path / "home"), folder(tmp_path / "mine")
    first = take_in(store, put)
    assert take_in(store, put) == first
    (put / "model.safetensors").write_bytes(b"other weights")
    assert take_in(store, put).manifest.name != first.manifest.name


@pytest.mark.parametrize(
    ("lacking", "said"),
    [
        ("config.json", "no config.json"),
        ("model.safetensors", "pickled weights"),
        ("tokenizer.json", "no tokenizer"),
    ],
)
def test_what_is_no_checkpoint_is_named(tmp_path: Path, lacking: str, said: str) -> None:
    put = folder(tmp_path / "mine")
    (put / lacking).unlink()
    with pytest.raises(NoCheckpoint, match=said):
        take_in(Store(tmp_path / "home"), put)


def test_a_checkpoint_that_asks_for_its_own_code_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NoCheckpoint, match="auto_map asks for code of its own, which is never run"):
        take_in(
            Store(tmp_path / "home"),
            folder(tmp_path / "mine", auto_map={"AutoModel": "modeling.Evil"}),
        )


def test_our_own_artifacts_are_not_taken_for_folders_put_by_hand(tmp_path: Path) -> None:
    home = Home(tmp_path)
    made = take_in(Store(home.path), folder(home.inbox / "a"))
    assert made.path.is_dir() and waiting(home) == [home.inbox / "a"]


def test_a_folder_that_is_still_being_copied_changes_its_fingerprint(tmp_path: Path) -> None:
    put = folder(tmp_path / "mine")
    before = fingerprint(put)
    with (put / "model.safetensors").open("ab") as file:
        file.write(b"more")
    assert fingerprint(put) != before
