"""Sensors that open a rollout for a new champion, and carry the end of a rollout into the ledger.

They read the ledger and the record of rollouts, not Dagster's events, so a lost Dagster database
opens nothing twice.
"""

from __future__ import annotations

import dagster as dg

from pipelines.jobs import deploy
from pipelines.sensors.sensor import sensor
from resources.registry.ledger import champions, named
from resources.registry.rollouts import NoRollout, Rollouts
from resources.run_context import RunContext


@sensor(job=deploy)
def champion_rollout(
    context: dg.SensorEvaluationContext, run_context: RunContext
) -> dg.SensorResult:
    """Opens a rollout for each new champion, if `rollout.automatic` of the profile is on. A running
    `ratchet serve` carries it out.
    """
    from serving.rollout.opening import open_rollout

    settings = run_context.profile.rollout
    if not settings.automatic:
        return dg.SensorResult(skip_reason="`rollout.automatic` is off: use `ratchet deploy`")
    ledger = run_context.ledger
    stack = champions(ledger.history())
    if len(stack) < 2 or stack[-1].kind == "rollback":
        return dg.SensorResult(skip_reason="there is no new champion to roll out")
    rollouts = Rollouts(ledger.place)
    cause = f"entry-{stack[-1].entry}"
    known = (r for r in rollouts.all() if r.events[0].detail["cause"] == cause)
    if rollout := next(known, None):
        return dg.SensorResult(skip_reason=f"{rollout.id} of {named(stack[-1])} is {rollout.state}")
    try:
        rollout = open_rollout(
            ledger, rollouts, settings, stack[-1].version, why="a new champion", cause=cause
        )
    except NoRollout as error:  # another rollout is open: wait for its end
        return dg.SensorResult(skip_reason=str(error))
    return dg.SensorResult(run_requests=[dg.RunRequest(run_key=f"{rollout.id}-opened")])


@sensor(job=deploy)
def ended_rollout(context: dg.SensorEvaluationContext, run_context: RunContext) -> dg.SensorResult:
    """Updates the deployment when a rollout has ended. After a rollback the ledger is rolled back,
    with the evidence.
    """
    rollouts = Rollouts(run_context.ledger.place).all()
    if not rollouts:
        return dg.SensorResult(skip_reason="there is no rollout yet")
    last = rollouts[-1]
    if last.open:
        return dg.SensorResult(skip_reason=f"{last.id} is {last.state}")
    return dg.SensorResult(run_requests=[dg.RunRequest(run_key=f"{last.id}-{last.state}")])
