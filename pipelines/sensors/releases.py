"""Sensors that open a release for a new champion, and carry the end of a release into the ledger.

They read the ledger and the record of releases, not Dagster's events, so a lost Dagster database
opens nothing twice.
"""

from __future__ import annotations

import dagster as dg

from pipelines.jobs import deploy
from pipelines.sensors.sensor import sensor
from resources.registry.ledger import champions, named
from resources.registry.releases import NoRelease, Releases
from resources.run_context import RunContext


@sensor(job=deploy)
def champion_release(
    context: dg.SensorEvaluationContext, run_context: RunContext
) -> dg.SensorResult:
    """Opens a release for each new champion, if `release.automatic` of the profile is on. A running
    `ratchet serve` carries it out.
    """
    from serving.release.opening import propose, trusted_keys

    settings = run_context.profile.release
    if not settings.automatic:
        return dg.SensorResult(skip_reason="`release.automatic` is off: use `ratchet deploy`")
    ledger = run_context.ledger
    stack = champions(ledger.history())
    if len(stack) < 2 or stack[-1].kind == "rollback":
        return dg.SensorResult(skip_reason="there is no new champion to release")
    releases = Releases(ledger.place)
    cause = f"entry-{stack[-1].entry}"
    known = (r for r in releases.all() if r.events[0].detail["cause"] == cause)
    if release := next(known, None):
        return dg.SensorResult(skip_reason=f"{release.id} of {named(stack[-1])} is {release.state}")
    try:
        trusted = trusted_keys(run_context.home, settings)
        proposal = propose(ledger, releases, settings, stack[-1].version, trusted=trusted)
        release = proposal.open(releases, "a new champion", cause)
    except NoRelease as error:  # another release is open: wait for its end
        return dg.SensorResult(skip_reason=str(error))
    return dg.SensorResult(run_requests=[dg.RunRequest(run_key=f"{release.id}-opened")])


@sensor(job=deploy)
def ended_release(context: dg.SensorEvaluationContext, run_context: RunContext) -> dg.SensorResult:
    """Updates the deployment when a release has ended. After a rollback the ledger is rolled back,
    with the evidence.
    """
    releases = Releases(run_context.ledger.place).all()
    if not releases:
        return dg.SensorResult(skip_reason="there is no release yet")
    last = releases[-1]
    if last.open:
        return dg.SensorResult(skip_reason=f"{last.id} is {last.state}")
    return dg.SensorResult(run_requests=[dg.RunRequest(run_key=f"{last.id}-{last.state}")])
