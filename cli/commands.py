"""What the smaller commands do: evaluate, promote, data limits."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.markdown import Markdown

from cli.data_commands import READS
from evaluation.promotion.summary import in_short
from pipelines.launch import explain_failure, ready, start_worker, watched
from pipelines.watch.view import View
from resources.config.profile import load_profile
from resources.home import Home, NotReady
from resources.intake import take_in
from resources.registry.ledger import ledger_of
from resources.run_record import Chain


def evaluate(checkpoint: str, profile: str | None, console: Console) -> int:
    """A name of the store, or a folder, which is copied and hashed first."""
    home, loaded = ready(profile, trains=False)
    name = _named(checkpoint, home, loaded.storage.root)
    return _run(
        "evaluate_checkpoint", name, home, profile, f"ratchet evaluate {checkpoint}", console
    )


def promote(checkpoint: str, profile: str | None, console: Console) -> int:
    """Scores first where that has not been done; then the gate decides and records."""
    home, loaded = ready(profile, trains=False)
    name = _named(checkpoint, home, loaded.storage.root)
    why = f"ratchet promote {checkpoint}"
    code = _run("evaluate_checkpoint", name, home, profile, why, console) or _run(
        "promote", name, home, profile, why, console
    )
    entry = next(
        (entry for entry in ledger_of(home, profile).history() if entry.chain == name), None
    )
    if code == 0 and entry:
        console.print(
            f"{entry.checkpoint}: {'promoted' if entry.kind == 'promote' else 'not promoted'}",
            style="bold",
        )
        console.print(in_short(entry.decision), highlight=False, soft_wrap=True)
        console.print(
            "\n".join(f"- {reason}" for reason in entry.decision["reasons"]),
            highlight=False,
            soft_wrap=True,
        )
    return code


def data_limits(apply: bool, profile: str | None, console: Console) -> int:
    """What limits learned from the references would save; `apply` chooses them for the next version of the data."""
    from problems.schema import read_parquet
    from problems.verification.chosen_limits import choose
    from problems.verification.limits import proposals, read, savings

    home = Home.from_environment()
    store = home.store(load_profile(profile).storage.root)
    raw, verified = (
        store.current("datasets", name) for name in ("raw_problems", "verified_problems")
    )
    if raw is None or verified is None:
        raise NotReady(f"no references have been tried yet: the first run does that: {READS}")
    rows = read(verified.path)
    choice = proposals(read_parquet(raw.path / "problems.parquet"), rows)
    console.print(Markdown(savings(read_parquet(verified.path / "problems.parquet"), rows)))
    told = f"{len(rows)} problems with measured references, {len(choice)} that may be trained on would have other limits than their source gives them"
    if apply:
        told += f". Chosen: {choose(home.path, choice)}; the next run verifies and writes the data with them ({READS}). Remove that file to take it back"
    console.print(f"{told}.", soft_wrap=True, highlight=False)
    return 0


def _named(checkpoint: str, home: Home, root: str) -> str:
    """The name under which the store has it; a folder is taken in. Raises FileNotFoundError with what there is."""
    store = home.store(root)
    if Path(checkpoint).is_dir():
        return take_in(store, Path(checkpoint)).manifest.name
    if store.current("checkpoints", checkpoint) is None:
        there = (
            ", ".join(
                name for name in store.names("checkpoints") if store.current("checkpoints", name)
            )
            or "none yet"
        )
        raise FileNotFoundError(
            f"no checkpoint {checkpoint!r}: give a Hugging Face folder, or one of: {there}"
        )
    return checkpoint


def _run(job: str, name: str, home: Home, profile: str | None, why: str, console: Console) -> int:
    folder = home.runs / name
    view = View(
        folder,
        f"{job} · {name}",
        stages=("benchmark_scores", "leaderboard")
        if job == "evaluate_checkpoint"
        else ("promoted_model",),
    )
    code = watched(
        lambda: start_worker(home, job, name, profile, why), view, Chain(folder), console
    )
    if code:
        explain_failure(folder, code, console)
    return code
