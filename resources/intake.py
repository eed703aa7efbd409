"""Import checkpoint folders that a person placed somewhere: copy and hash them before use.

In: any folder. Out: an artifact of the store under its own name, or `NoCheckpoint` that says what
is missing. Nothing in the folder is ever executed: only safetensors weights are taken, and no
Python file.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
from pathlib import Path

from artifacts.hashing import hash_data, hash_folder
from artifacts.manifest import Manifest
from artifacts.store import Artifact, Store
from resources.home import Home

PATTERNS = ("*.json", "*.safetensors", "*.txt", "*.model", "*.jinja")


class NoCheckpoint(ValueError):
    """The folder is not a loadable checkpoint. The message names it and what is missing."""


def waiting(home: Home) -> list[Path]:
    """Return folders that look like Hugging Face checkpoints.

    They are in the inbox, or were placed directly beside our own checkpoints.
    """
    return sorted(
        path.parent
        for place in (home.inbox, home.path / "checkpoints")
        for path in place.glob("*/config.json")
    )


def fingerprint(folder: Path) -> str:
    """Return a hash of the files' names, sizes and times.

    It is cheap, and changes while the folder is being copied.
    """
    files: list[tuple[str, int, int]] = []
    # Unlike rglob, os.walk tolerates files that are renamed or removed meanwhile.
    for root, _, names in os.walk(folder):
        for path in (Path(root, name) for name in names):
            with contextlib.suppress(FileNotFoundError):
                stat = path.stat()
                files.append((path.relative_to(folder).as_posix(), stat.st_size, stat.st_mtime_ns))
    return hash_data(sorted(files))


def import_checkpoint(store: Store, folder: Path) -> Artifact:
    """Import the folder as an artifact named after it and its content.

    The same content is imported only once. Raises NoCheckpoint.
    """
    _check_checkpoint(folder)
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", folder.name).strip("-.") or "checkpoint"
    with store.draft("checkpoints", "inbox") as draft:
        for pattern in PATTERNS:
            for path in folder.glob(pattern):
                shutil.copyfile(path, draft / path.name)
        content_hash = hash_folder(draft)
        facts = {"put_by_hand_at": str(folder)}
        key = hash_data({"put_by_hand": content_hash})
        return store.publish(
            draft,
            Manifest(
                kind="checkpoints",
                name=f"{name}-{content_hash[:8]}",
                key=key,
                content_hash=content_hash,
                facts=facts,
            ),
        )


def _check_checkpoint(folder: Path) -> None:
    if not (folder / "config.json").is_file():
        raise NoCheckpoint(
            f"{folder}: no config.json: a checkpoint is a Hugging Face folder with config, "
            "tokenizer and safetensors weights"
        )
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        if not isinstance(config, dict):
            raise ValueError(f"a {type(config).__name__}")
    except ValueError as error:
        raise NoCheckpoint(
            f"{folder}/config.json: no JSON object ({error}): export the model again "
            "with save_pretrained"
        ) from error
    if "auto_map" in config:
        raise NoCheckpoint(
            f"{folder}/config.json: key auto_map names code in the checkpoint, which is never "
            "run: use an architecture of transformers"
        )
    if not list(folder.glob("*.safetensors")):
        raise NoCheckpoint(
            f"{folder}: no *.safetensors: export the weights with save_pretrained (pickled "
            "weights are never loaded)"
        )
    for file in sorted(folder.glob("*.safetensors")):
        _check_weights(file)
    if not list(folder.glob("tokenizer*")):
        raise NoCheckpoint(
            f"{folder}: no tokenizer files: save the tokenizer beside the weights with "
            "save_pretrained"
        )
    if (folder / "tokenizer.json").is_file():
        _check_tokenizer(folder / "tokenizer.json")


def _check_weights(file: Path) -> None:
    """Read a file's header, which says how long the file is."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, "np"):
            pass
    except SafetensorError as error:
        raise NoCheckpoint(
            f"{file}: damaged or incomplete ({error}): copy it or export the weights again"
        ) from error


def _check_tokenizer(file: Path) -> None:
    from tokenizers import Tokenizer

    try:
        Tokenizer.from_file(str(file))
    except Exception as error:  # the library raises no class of its own
        raise NoCheckpoint(
            f"{file}: no tokenizer ({error}): save it again with save_pretrained"
        ) from error
