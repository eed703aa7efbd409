"""The version in front of users, after the rollouts that have ended.

In: the record of rollouts and the ledger. Out: the deployed version; a rollback in the ledger, with
its evidence, where a rollout has taken the champion back.
"""

from typing import Any

import dagster as dg

from assets.markdown import markdown
from assets.stages import asset_of
from resources.registry.ledger import Entry, Ledger, champion_of, named
from resources.registry.rollouts import Rollout, Rollouts, deployed
from resources.run_context import RunContext


@dg.asset(
    **asset_of("deployment"),
    kinds={"sqlite"},
)
def deployment(context: dg.AssetExecutionContext, run_context: RunContext) -> dg.MaterializeResult:  # type: ignore[type-arg]
    """The version that answers users. If a rollout has taken the champion back, the ledger is
    rolled back too, once, with the rollout's evidence.
    """
    ledger = run_context.ledger
    rollouts = Rollouts(ledger.place).all()
    if undone := follow_rollback(ledger, rollouts):
        context.log.warning(" ".join(undone.decision["reasons"]))
    if sync_problem := run_context.mlflow.try_sync(ledger):
        context.log.warning(sync_problem)
    champion = champion_of(ledger.history())
    version = deployed(rollouts) or (champion.version if champion else 0)
    metadata: dict[str, Any] = {
        "version": version,
        "champion": named(champion),
        "rollouts": dg.MetadataValue.md(rollout_table(rollouts)),
        "mlflow": sync_problem or "in sync",
    }
    return dg.MaterializeResult(metadata=metadata, data_version=dg.DataVersion(str(version)))


def follow_rollback(ledger: Ledger, rollouts: list[Rollout]) -> Entry | None:
    """Roll the ledger back if the newest rollout has taken its champion back; return the entry.

    Repeated calls record it once.
    """
    champion = champion_of(ledger.history())
    last = rollouts[-1] if rollouts else None
    if not last or last.state != "rolled_back" or not champion:
        return None
    if champion.version not in last.challengers or champion.kind == "rollback":
        return None
    reason = f"{last.id}: {' '.join(last.last.detail['reasons'])}"
    return ledger.rollback(last.id, reason, to=last.champion, undoing=champion.entry)


def rollout_table(rollouts: list[Rollout]) -> str:
    """Return the rollouts, newest first, with the reason of each one's last event."""
    rows = [
        (
            rollout.id,
            f"{rollout.champion} → {', '.join(map(str, rollout.challengers))}",
            rollout.plan.get("strategy", "unknown"),
            rollout.state.replace("_", " "),
            " ".join(rollout.last.detail["reasons"]),
        )
        for rollout in rollouts[::-1]
    ]
    names = ("rollout", "versions", "strategy", "state", "reason")
    return markdown(names, rows) if rows else "no rollout yet"
