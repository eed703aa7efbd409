"""A round of judgements as a folder: its pairs, written once, and the choices, appended line by
line.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from artifacts.atomic import write_atomic
from artifacts.integrity import RESTORE, reading
from evaluation.preference.pairs import Chosen, CompletionPair, order
from evaluation.statistics.bradley_terry import PairChoice
from problems.columns import ProblemError
from resources.home import NotReady
from rewards.choices import ShownChoice, read_choices

FIX = f"{RESTORE}, or start another round with --out"
QUESTION = "Which answer would you rather have?"


class RoundInfo(BaseModel):
    """The description of a round."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    seed: int
    question: str = QUESTION
    contestants: dict[str, str]  # name -> origin of its completions
    same: int = 0  # pairs left out because both texts are equal


class RoundInUse(NotReady):
    """Another process has the round open. Two writers could show a judge the same pair twice."""


class AlreadyJudged(ValueError):
    """This judge has already judged this pair."""


def begin(folder: Path, about: RoundInfo, pairs: Sequence[CompletionPair]) -> None:
    """Write the round's pairs, unless they exist: a round never changes. Raises ProblemError
    without pairs, or if the folder holds another round.
    """
    if not pairs:
        raise ProblemError(
            "the contestants have no pair of different completions",
            "name contestants whose completions differ",
        )
    if (folder / "round.json").exists():
        check(folder, about, pairs)
    else:
        write_atomic(
            folder / "pairs.jsonl", "".join(pair.model_dump_json() + "\n" for pair in pairs)
        )
        write_atomic(folder / "round.json", about.model_dump_json(indent=1))


def check(folder: Path, about: RoundInfo, pairs: Sequence[CompletionPair]) -> None:
    """Raise ProblemError if the folder holds another round, FileNotFoundError if it holds none."""
    existing, existing_pairs = read_round(folder)
    if (existing.seed, existing.question, list(existing_pairs)) != (
        about.seed,
        about.question,
        [pair.id for pair in pairs],
    ):
        raise ProblemError(
            "the folder holds another round",
            "choose another folder with --out, or repeat the contestants and options",
            str(folder),
        )


class Round:
    """An open round. Threads may read and choose concurrently; `close` frees it for others."""

    def __init__(self, folder: Path) -> None:
        """Open a round. Raises FileNotFoundError if the folder holds none, RoundInUse if another
        process has it open.
        """
        self.folder = folder
        self.about, self.pairs = read_round(folder)
        self._lock = threading.Lock()
        self._file = (folder / "choices.jsonl").open("ab")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self._file.close()
            raise RoundInUse(
                f"another process has the round in {folder} open: use its page, which several "
                "judges can share"
            ) from error
        _drop_torn_line(folder / "choices.jsonl")
        self._judged = {(choice.judge, choice.pair) for choice in read_matches(folder)}

    def close(self) -> None:
        self._file.close()

    def next(self, judge: str) -> CompletionPair | None:
        """Return the first pair in this judge's order without a choice of theirs; None when all are
        done.
        """
        return next(
            (
                pair
                for pair in order(list(self.pairs.values()), self.about.seed, judge)
                if (judge, pair.id) not in self._judged
            ),
            None,
        )

    def done(self, judge: str) -> int:
        """Return the number of pairs that this judge has judged."""
        return sum(name == judge for name, _ in self._judged)

    def choose(self, judge: str, pair_id: str, chosen: Chosen) -> ShownChoice:
        """Record one choice; it is on disk when this returns. Raises KeyError for an unknown pair,
        AlreadyJudged for a second choice in it.
        """
        pair = self.pairs[pair_id]
        left, right = pair.sides(self.about.seed, judge)
        choice = ShownChoice(
            problem_id=pair.problem_id,
            left=left,
            right=right,
            chosen=chosen,
            judge=judge,
            at=datetime.now(UTC).isoformat(timespec="seconds"),
        )
        with self._lock:
            if (judge, pair_id) in self._judged:
                raise AlreadyJudged(f"judge {judge} has already judged pair {pair_id}")
            self._file.write(json.dumps(choice.model_dump()).encode() + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())
            self._judged.add((judge, pair_id))
        return choice


def read_round(folder: Path) -> tuple[RoundInfo, Mapping[str, CompletionPair]]:
    """Read a round. Raises FileNotFoundError if the folder holds none, and CorruptArtifact."""
    about_file, pairs_file = folder / "round.json", folder / "pairs.jsonl"
    if not about_file.exists():
        raise FileNotFoundError(f"{folder} holds no round: start one with `ratchet prefer A B`")
    with reading(about_file, FIX):
        about = RoundInfo.model_validate_json(about_file.read_bytes())
    with reading(pairs_file, FIX):
        lines = pairs_file.read_bytes().splitlines()
        pairs = [CompletionPair.model_validate_json(line) for line in lines]
    return about, {pair.id: pair for pair in pairs}


def read_matches(folder: Path) -> list[PairChoice]:
    """Return every choice of a round with its contestants. Raises ProblemError for a choice that
    belongs to no pair.
    """
    path = folder / "choices.jsonl"
    pairs = {
        (pair.problem_id, frozenset((pair.first, pair.second))): pair
        for pair in read_round(folder)[1].values()
    }
    matches = []
    for number, choice in enumerate(read_choices(path) if path.exists() else []):
        pair = pairs.get((choice.problem_id, frozenset((choice.left, choice.right))))
        if pair is None:
            raise ProblemError(
                f"{choice.problem_id}: the round has no pair of these two completions",
                "remove the row",
                f"{path}: row {number}",
            )
        won = pair.winner(choice.left, choice.chosen)
        left = None if choice.chosen == "tie" else choice.chosen == "left"
        matches.append(
            PairChoice(
                pair=pair.id,
                problem_id=pair.problem_id,
                judge=choice.judge,
                first=pair.first_of,
                second=pair.second_of,
                won=won,
                left=left,
            )
        )
    return matches


def _drop_torn_line(path: Path) -> None:
    """Remove a partial last line, left by a kill. Its choice was never confirmed to the judge."""
    data = path.read_bytes()
    complete = data.rfind(b"\n") + 1
    if complete < len(data):
        os.truncate(path, complete)
