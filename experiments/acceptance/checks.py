"""Judge the evidence of an acceptance run: each check has its figures and its limit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from evaluation.promotion.gate import points, signed
from experiments.acceptance.evidence import Evidence, gib
from verl_jobs.planner.planner import RESERVE

MINUTES = 25.0
# Most difference between engine and trainer in a step's mean: of a sampled token's probability, and
# of a completion's mean log-probability in nats. A trainer in bf16 and an engine in fp32 on a CPU
# differed by 0.0011 and 0.0097.
MAX_DIFFERENCE, MAX_LOG_DIFFERENCE = 0.01, 0.05
DIFFERENCE, LOG_DIFFERENCE = "training/rollout_probs_diff_mean", "rollout_corr/log_ppl_abs_diff"
MEMORY, SPEED = "actor/perf/max_memory_allocated_gb", "perf/throughput"
# the planner's parts of a step, and verl's timers
TIMERS = {"rollout": "gen", "old log-probabilities": "old_log_prob", "update": "update_actor"}

State = Literal["passed", "failed", "not applicable"]


@dataclass(frozen=True)
class Check:
    name: str
    state: State
    figures: str
    limit: str = ""


@dataclass(frozen=True)
class Measure:
    """A figure beside the planner's. Both in the unit; None: not measured, or not planned."""

    name: str
    unit: str
    measured: float | None
    planned: float | None = None


def checks(evidence: Evidence) -> list[Check]:
    return [
        _machine(evidence),
        _engine(evidence),
        _training(evidence),
        _weights(evidence),
        _resume(evidence),
        _gate(evidence),
        _memory(evidence),
        _gpu(evidence),
        _time(evidence),
    ]


def measures(evidence: Evidence) -> Iterator[Measure]:
    """Yield what was measured beside the planner's figures, with a GPU's seconds and memory."""
    e, plan = evidence, evidence.plan
    planned = plan.seconds if plan else {}
    yield Measure("tokens a second", "", e.median(SPEED), plan.tokens_per_second if plan else None)
    yield Measure("a step", "s", e.median("timing_s/step"), sum(planned.values()) or None)
    for part, timer in TIMERS.items():
        yield Measure(part, "s", e.median(f"timing_s/{timer}"), planned.get(part))
    update, rollout = (
        gib(sum(phase.values())) if plan else None
        for phase in ((plan.update, plan.rollout) if plan else ({}, {}))
    )
    yield Measure("memory of the trainer", "GiB", max(e.values(MEMORY), default=None), update)
    peaks = {name: peak for name, (peak, _) in e.load.items()}
    means = {name: mean for name, (_, mean) in e.load.items()}
    yield Measure("memory of the GPUs, at most", "GiB", peaks.get("gpu_memory_gib"), rollout)
    yield Measure("GPU busy, mean", "%", means.get("gpu_percent"))
    yield Measure("memory of the machine, at most", "GiB", peaks.get("memory_gib"))
    yield Measure("CPU busy, mean", "%", means.get("cpu_percent"))


def _passed(condition: bool) -> State:
    return "passed" if condition else "failed"


def _machine(evidence: Evidence) -> Check:
    missing = [finding for finding in evidence.findings if finding.blocks]
    figures = "; ".join(f"{each.part}: {each.found}" for each in missing) or "nothing is missing"
    return Check("machine", _passed(not missing), figures, "what `ratchet doctor` requires")


def _engine(evidence: Evidence) -> Check:
    begun, engine = evidence.begun, evidence.training.engine
    if not evidence.rows:
        return Check("engine", "failed", f"{engine}: no step was made", "a first step")
    tokens = evidence.rows[0].get("perf/total_num_tokens", 0)
    figures = f"{engine}: {tokens:,.0f} tokens in the first step"
    if {"trainer", "first_step"} <= begun.keys():
        figures += f", {begun['first_step'] - begun['trainer']:.0f} s after the trainer's start"
    return Check("engine", _passed(tokens > 0), figures, "a first step with completions")


def _training(evidence: Evidence) -> Check:
    fsdp = (evidence.kill or {}).get("fsdp", {})
    steps, precision = evidence.training.steps, evidence.training.scale.precision
    made = evidence.rows[-1]["step"] if evidence.rows else 0
    version = fsdp.get("FSDP_version")
    figures = f"{made} of {steps} steps, FSDP {version or 'unknown'}, {precision}"
    return Check(
        "training",
        _passed(evidence.finished and made == steps and version == 2),
        figures,
        f"{steps} steps, FSDP 2 in its checkpoint",
    )


def _weights(evidence: Evidence) -> Check:
    name = "engine and trainer"
    limit = f"at most {MAX_DIFFERENCE} and {MAX_LOG_DIFFERENCE} nats, in every step"
    probability, log = evidence.values(DIFFERENCE), evidence.values(LOG_DIFFERENCE)
    if not probability or not log:
        return Check(name, "failed", "no step compared their log-probabilities", limit)
    figures = (
        f"a token's probability differs by {max(probability):.1e}, its log-probability by "
        f"{max(log):.1e} nats (means of the worst of {len(probability)} steps)"
    )
    equal = max(probability) <= MAX_DIFFERENCE and max(log) <= MAX_LOG_DIFFERENCE
    return Check(name, _passed(equal), figures, limit)


def _resume(evidence: Evidence) -> Check:
    most, attempts = evidence.training.save_every, evidence.attempts
    limit = f"at most {most} steps repeated, none skipped, not from the start"
    if evidence.kill is None or len(attempts) < 2:
        return Check("kill and resume", "failed", "no training was killed and resumed", limit)
    repeated = [before[-1] - after[0] + 1 for before, after in pairwise(attempts)]
    good = all(0 <= each <= most for each in repeated) and min(a[0] for a in attempts[1:]) > 1
    figures = (
        f"SIGKILL in step {evidence.kill['step'] + 1}; it resumed with step {attempts[1][0]}, "
        f"{sum(repeated)} repeated"
    )
    return Check("kill and resume", _passed(good and evidence.finished), figures, limit)


def _gate(evidence: Evidence) -> Check:
    decision = evidence.decision
    compared = decision["comparison"] if decision else None
    if not decision or not compared:
        return Check("gate", "failed", "no decision", "a decision")
    before, after = compared["before"], compared["after"]
    figures = (
        f"{points(before['share'])} % before, {points(after['share'])} % after: "
        f"{signed(compared['difference'])} points ({points(compared['difference_low'])} to "
        f"{points(compared['difference_high'])}) on {after['tasks']} held-out problems; "
        f"{decision['kind']}"
    )
    if evidence.device == "cpu":
        figures += "; so few steps teach nothing"
        return Check("gate", "not applicable", figures, "a promotion")
    return Check("gate", _passed(decision["kind"] == "promote"), figures, "a promotion")


def _memory(evidence: Evidence) -> Check:
    used, plan, reserve = max(evidence.values(MEMORY), default=None), evidence.plan, gib(RESERVE)
    limit = f"the plan and the {reserve:.0f} GiB that it keeps free"
    if evidence.device == "cpu":
        return Check("memory", "not applicable", "the planner's figures are a GPU's", limit)
    if used is None or plan is None:
        return Check("memory", "failed", "not measured", limit)
    planned = gib(sum(plan.update.values()))
    figures = f"{used:.2f} GiB at most, {planned:.2f} planned for an update"
    return Check("memory", _passed(used <= planned + reserve), figures, limit)


def _gpu(evidence: Evidence) -> Check:
    peak, mean = evidence.load.get("gpu_percent", (None, None))
    if peak is None or mean is None:
        return Check("GPU in use", "not applicable", "nvidia-smi reports none", "busy at some time")
    figures = f"{mean:.0f} % busy on average, {peak:.0f} % at most"
    return Check("GPU in use", _passed(peak > 0), figures, "busy at some time")


def _time(evidence: Evidence) -> Check:
    minutes = evidence.record.took_minutes if evidence.record else 0.0
    figures, limit = f"{minutes:.1f} minutes", f"at most {MINUTES:.0f} on one GPU"
    if evidence.device == "cpu":
        return Check("time", "not applicable", figures, limit)
    return Check("time", _passed(0 < minutes <= MINUTES), figures, limit)
