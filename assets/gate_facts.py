"""Facts about a challenger besides its scores: passport, battery, measures, earlier gates.

In: the run's context and its scorecards. Out: `Facts`. Every call returns the same facts, because
only records from before this run's decision count.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from artifacts.integrity import read_manifest
from artifacts.manifest import Manifest
from artifacts.passport import ManifestIndex, walk
from artifacts.store import Artifact, Store, manifests
from artifacts.tensors import weights_hash
from assets.verified_reward import unverified_by
from evaluation.promotion.checks import Facts
from evaluation.promotion.policy import Measure
from evaluation.reports.figures import suspects_in
from evaluation.scorecard import Scorecard
from evaluation.statistics.alpha_spending import Gate
from problems.dataset.evidence import suspects_of
from resources.registry.ledger import Entry
from resources.run_context import StageContext
from rewards import watch


def facts_of(stage: StageContext, gated: Scorecard, cards: Iterable[Scorecard] = ()) -> Facts:
    """Return the facts about this run's challenger.

    gated: its scorecard on the benchmark that decides. cards: all its scorecards.
    """
    artifact = stage.store.current("checkpoints", stage.pipeline_run.record.id)
    suspects_by_source = suspects_of(stage.store)
    suspects = {
        card.benchmark: tuple(sorted(tasks))
        for card in (gated, *cards)
        if (tasks := suspects_in(card, suspects_by_source)) is not None
    }
    weights = weights_of(stage.store, gated.checkpoint_hash)
    before = _before(stage.run_context.ledger.history(), stage.pipeline_run.record.id)
    return Facts(
        picked_on="validation" if artifact and "validation" in artifact.manifest.facts else "",
        made_elsewhere=str(artifact.manifest.facts.get("put_by_hand_at", "")) if artifact else "",
        missing_links=missing_links(stage.store, artifact.manifest) if artifact else (),
        unverified=tuple(unverified_by(artifact.manifest)) if artifact else (),
        measures=_measures(stage, artifact, gated, suspects.get(gated.benchmark)),
        suspects={name: tasks for name, tasks in suspects.items() if tasks},
        gates=gates_of(before),
        weights=weights,
        earlier_tries=earlier_tries(before, gated, weights),
    )


def gates_of(entries: Iterable[Entry]) -> tuple[Gate, ...]:
    """Return the test of each recorded decision, oldest first.

    Installs and rollbacks have no test.
    """
    gates = []
    for entry in entries:
        if comparison := entry.decision.get("comparison"):
            gate = Gate(
                run_id=entry.run_id,
                benchmark=comparison["benchmark"],
                benchmark_version=comparison["benchmark_version"],
                p_value=comparison["p_better"],
                level=entry.decision["level"],
            )
            gates.append(gate)
    return tuple(gates)


def earlier_tries(entries: Sequence[Entry], gated: Scorecard, weights: str) -> tuple[str, ...]:
    """Return the earlier decisions on this challenger's weights and benchmark, oldest first.

    weights: the hash of its tensors. Weights are the same if all tensors are, whatever else is in
    the folder.
    """
    return tuple(
        f"{entry.run_id} ({entry.created_at[:10]}): {entry.kind}"
        for entry in entries
        if (entry.decision.get("comparison") or {}).get("benchmark") == gated.benchmark
        and (
            entry.checkpoint_hash == gated.checkpoint_hash
            or entry.decision["facts"]["weights"] == weights
        )
    )


def weights_of(store: Store, content: str) -> str:
    """Return the hash of a checkpoint's tensors; its content hash where they are not known."""
    paths = manifests(store.cache / "checkpoints")
    folders = {read_manifest(path).content_hash: path.parent for path in paths}
    folder = folders.get(content)
    return (weights_hash(folder, content) if folder else "") or content


def alpha_rows(gates: Sequence[Gate]) -> list[tuple[object, ...]]:
    """Return the rows of the alpha spending table, newest first.

    Columns: gate, benchmark, level, p-value, whether a gain was shown, sum of levels so far.
    """
    total = 0.0
    rows: list[tuple[object, ...]] = []
    for gate in gates:
        total += gate.level
        rows.append(
            (
                gate.run_id,
                gate.benchmark,
                f"{gate.level:.3g}",
                f"{gate.p_value:.4f}",
                "shown" if gate.significant else "",
                f"{total:.3g}",
            )
        )
    return rows[::-1]


def missing_links(store: Store, manifest: Manifest) -> tuple[str, ...]:
    """Return the direct and indirect inputs whose content is missing from the store.

    Inputs that are not artifacts (a reward, a source) do not count.
    """
    index = ManifestIndex.of(store)
    return tuple(walk(index.node_of(manifest), index).missing)


def _measures(
    stage: StageContext, artifact: Artifact | None, gated: Scorecard, suspect: Sequence[str] | None
) -> dict[Measure, float]:
    """Return the measured values. latency_s and tokens are per completion, cost is per training."""
    completions = len(gated.samples)
    measures: dict[Measure, float] = {}
    if suspect is not None:
        tasks = {sample.task_id for sample in gated.samples}
        measures["contamination"] = len(tasks & set(suspect)) / len(tasks)
    if seconds := gated.measured.get("generation_s"):
        measures["latency_s"] = seconds / completions
    if tokens := gated.measured.get("tokens"):
        measures["tokens"] = tokens / completions
    if stage.profile.price_per_hour and (
        timing := stage.pipeline_run.record.stages.get("checkpoint")
    ):
        measures["cost"] = timing.seconds / 3600 * stage.profile.price_per_hour
    history = (
        json.loads((artifact.path / "measured.json").read_text(encoding="utf-8"))
        if artifact and (artifact.path / "measured.json").exists()
        else []
    )
    last_values: list[tuple[Measure, str]] = [
        ("hack_gap", watch.GAP),
        ("denied_calls", watch.DENIED),
    ]
    for measure, key in last_values:
        if values := [float(row[key]) for row in history if row.get(key) is not None]:
            measures[measure] = values[-1]
    return measures


def _before(history: Sequence[Entry], run_id: str) -> list[Entry]:
    """Return the entries before this run's own, so that a repeated decision has the same result."""
    end = next(
        (index for index, entry in enumerate(history) if entry.run_id == run_id), len(history)
    )
    return list(history[:end])
