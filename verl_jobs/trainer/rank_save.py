"""What each rank writes of a save, in the background, and how the trainer learns that it is there.

In: a rank's state (verl_jobs/adapter). Out: verl's files, this rank's part of the weights, and last
a list with the hash of each of these files, which was computed while it was written. The rank
itself returns as soon as its state is copied.
"""

from __future__ import annotations

import copy
import json
import os
import threading
import time
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from artifacts.atomic import write_atomic
from artifacts.hashing import HashedFile
from artifacts.tensors import write_tensors
from verl_jobs.trainer.background import Background, copy_to_host, fits
from verl_jobs.trainer.export import INDEX, RankPart, aliases, gather_part, own_precision, raw

POLL_S = 0.1
RESERVED = 4096  # bytes of a list, so that an error can be told even when the disk is full
WEIGHTS = "huggingface"  # verl's folder for configuration, tokenizer and weights
_writers: dict[str, Background] = {}  # of this process: by the folder's name, actor or critic


class SaveFailed(RuntimeError):
    """A rank could not write its part of a save."""


def save(state: Any, folder: Path) -> None:
    """Copy a rank's state, and write it in the background. All ranks call it together.

    state: SaveState of the adapter; folder: of the actor or the critic in the save. Waits first for
    the save before it. Without room for the copy, it returns when the files are written.
    """
    writer = _writers.setdefault(folder.name, Background("save"))
    writer.wait()
    part = _weights(state, folder / WEIGHTS) if state.exports else None
    local = int(os.environ.get("RAY_LOCAL_WORLD_SIZE", state.ranks))
    has_room = fits(state.files, local)
    files = copy_to_host(state.files) if has_room else state.files
    _list(folder, state.rank).write_bytes(b" " * RESERVED)
    writer.start(lambda: _write(files, part, folder, state.rank, state.ranks))
    if not has_room:
        writer.wait()


def wait_for_writers() -> None:
    """Wait until this process has written its last save. Raises the error that prevented it."""
    for writer in _writers.values():
        writer.wait()


def _weights(state: Any, folder: Path) -> RankPart:
    """Return this rank's part of the weights; rank 0 writes their configuration and index."""
    precision = own_precision(Path(state.module.config.name_or_path))
    part = gather_part(
        state.files["model"], aliases(state.module), precision, state.rank, state.ranks
    )
    if state.rank == 0:
        config = copy.deepcopy(state.module.config)
        config.dtype = precision
        config.save_pretrained(folder)
        if part.contents:
            (folder / INDEX).write_text(part.contents, encoding="utf-8")
    return part


def _write(
    files: dict[str, Any], part: RankPart | None, folder: Path, rank: int, ranks: int
) -> None:
    import torch

    hashes: dict[str, str] = {}
    try:
        for kind, content in files.items():
            name = f"{kind}_world_size_{ranks}_rank_{rank}.pt"
            with HashedFile(folder / name) as file:
                torch.save(content, file)  # type: ignore[arg-type]  # it needs only write and flush
            hashes[name] = file.sha256
        if part and part.tensors:
            with HashedFile(folder / WEIGHTS / part.file) as file:
                write_tensors(file, raw(part.tensors))
            hashes[f"{WEIGHTS}/{part.file}"] = file.sha256
        write_atomic(_list(folder, rank), json.dumps({"hashes": hashes}))
    except Exception as error:
        text = json.dumps({"error": f"{type(error).__name__}: {str(error)[: RESERVED // 8]}"})
        try:
            with _list(folder, rank).open("r+b") as listed:
                listed.write(text.encode())
        except OSError:
            traceback.print_exc()
            # The trainer would wait for ever; it notices the death of a rank (trainer/entry.py).
            os._exit(1)
        raise


def collect(save: Path, learners: Iterable[str], ranks: int) -> dict[str, str]:
    """Wait until every rank has written its files; return their hashes by name in the save.

    learners: the folders of a save in which ranks write. The lists are removed.
    Raises SaveFailed with the first error of a rank.
    """
    hashes: dict[str, str] = {}
    for learner in learners:
        for rank in range(ranks):
            path = _list(save / learner, rank)
            while not (content := _content(path)):
                if not threading.main_thread().is_alive():
                    raise SaveFailed(f"{save.name}: the trainer ended before rank {rank} had saved")
                time.sleep(POLL_S)
            if error := content.get("error"):
                raise SaveFailed(f"{save.name}: rank {rank} of {learner} cannot save: {error}")
            hashes |= {f"{learner}/{name}": each for name, each in content["hashes"].items()}
            path.unlink()
    return hashes


def _content(path: Path) -> dict[str, Any]:
    """Return a list's content; empty while the rank still writes."""
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):  # ValueError: blank, or read while it is written
        return {}
    return content


def _list(folder: Path, rank: int) -> Path:
    return folder / f"hashes_rank_{rank}.json"
