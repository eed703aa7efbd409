"""The version in front of users, after the releases that have ended.

In: the record of releases and the ledger. Out: the deployed version; a rollback in the ledger, with
its evidence, where a release has taken the champion back.
"""

from typing import Any

import dagster as dg

from assets.markdown import markdown
from assets.stages import asset_of
from resources.registry.ledger import Entry, Ledger, champion_of, named
from resources.registry.releases import Release, Releases, deployed
from resources.run_context import RunContext


@dg.asset(
    **asset_of("deployment"),
    kinds={"sqlite"},
)
def deployment(context: dg.AssetExecutionContext, run_context: RunContext) -> dg.MaterializeResult:  # type: ignore[type-arg]
    """The version that answers users. If a release has taken the champion back, the ledger is
    rolled back too, once, with the release's evidence.
    """
    ledger = run_context.ledger
    releases = Releases(ledger.place).all()
    if undone := follow_rollback(ledger, releases):
        context.log.warning(" ".join(undone.decision["reasons"]))
    if sync_problem := run_context.mlflow.try_sync(ledger):
        context.log.warning(sync_problem)
    champion = champion_of(ledger.history())
    version = deployed(releases) or (champion.version if champion else 0)
    metadata: dict[str, Any] = {
        "version": version,
        "champion": named(champion),
        "releases": dg.MetadataValue.md(release_table(releases)),
        "mlflow": sync_problem or "in sync",
    }
    return dg.MaterializeResult(metadata=metadata, data_version=dg.DataVersion(str(version)))


def follow_rollback(ledger: Ledger, releases: list[Release]) -> Entry | None:
    """Roll the ledger back if the newest release has taken its champion back; return the entry.

    Repeated calls record it once.
    """
    champion = champion_of(ledger.history())
    last = releases[-1] if releases else None
    if not last or last.state != "rolled_back" or not champion:
        return None
    if champion.version not in last.challengers or champion.kind == "rollback":
        return None
    reason = f"{last.id}: {' '.join(last.last.detail['reasons'])}"
    return ledger.rollback(last.id, reason, to=last.champion, undoing=champion.entry)


def release_table(releases: list[Release]) -> str:
    """Return the releases, newest first, with the reason of each one's last event."""
    rows = [
        (
            release.id,
            f"{release.champion} → {', '.join(map(str, release.challengers))}",
            release.plan.get("strategy", "unknown"),
            release.state.replace("_", " "),
            " ".join(release.last.detail["reasons"]),
        )
        for release in releases[::-1]
    ]
    names = ("release", "versions", "strategy", "state", "reason")
    return markdown(names, rows) if rows else "no release yet"
