"""Judge the evidence of an acceptance run: each check has its figures and its limit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from evaluation.promotion.comparison import signed
from evaluation.promotion.rate import points
from experiments.acceptance.evidence import TrainingRecords, gib
from verl_jobs.planner.planner import RESERVE

MINUTES, PART_MINUTES, START_MINUTES = 20.0, 8.0, 4.0
# Most difference between engine and trainer in a step's mean: of a sampled token's probability, and
# of a completion's mean log-probability in nats. A trainer in bf16 and an engine in fp32 on a CPU
# differed by 0.0011 and 0.0097.
MAX_DIFFERENCE, MAX_LOG_DIFFERENCE = 0.01, 0.05
DIFFERENCE, LOG_DIFFERENCE = "training/rollout_probs_diff_mean", "rollout_corr/log_ppl_abs_diff"
MEMORY, SPEED = "actor/perf/max_memory_allocated_gb", "perf/throughput"
# the planner's parts of a step, and verl's timers
TIMERS = {"rollout": "gen", "old log-probabilities": "old_log_prob", "update": "update_actor"}

State = Literal["passed", "failed", "not applicable", "not run"]


@dataclass(frozen=True)
class AcceptanceCheck:
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


@dataclass(frozen=True)
class DrivePart:
    """What happens between two events of drive.py, and the checks of it."""

    name: str
    begins: str
    ends: str
    checks: tuple[Callable[[TrainingRecords], AcceptanceCheck], ...]


@dataclass(frozen=True)
class PartResult:
    name: str
    state: State
    seconds: float | None
    checks: tuple[AcceptanceCheck, ...]


def results(evidence: TrainingRecords) -> Iterator[PartResult]:
    """Judge each part. A part whose end was not reached is `not run`, unless a check of the machine
    already failed; a part that has failed checks, or takes too long, is `failed`.
    """
    for part in PARTS:
        begun, ended = (evidence.events.get(event) for event in (part.begins, part.ends))
        if ended is None or begun is None:
            yield PartResult(part.name, "not run", None, ())
            continue
        made = tuple(check(evidence) for check in part.checks)
        made += (_part_time(evidence, ended - begun),) if part.ends != "decided" else ()
        failed = any(check.state == "failed" for check in made)
        none = all(each.state == "not applicable" for each in made if each.name != "seconds")
        state: State = "failed" if failed else "not applicable" if none else "passed"
        yield PartResult(part.name, state, round(ended - begun, 1), made)


def measures(evidence: TrainingRecords) -> Iterator[Measure]:
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


def _machine(evidence: TrainingRecords) -> AcceptanceCheck:
    missing = [finding for finding in evidence.findings if finding.blocks]
    figures = "; ".join(f"{each.part}: {each.found}" for each in missing) or "nothing is missing"
    return AcceptanceCheck(
        "machine", _passed(not missing), figures, "what `ratchet doctor` requires"
    )


def _part_time(evidence: TrainingRecords, seconds: float) -> AcceptanceCheck:
    figures, limit = f"{seconds:.0f} s", f"at most {PART_MINUTES:.0f} minutes"
    if evidence.device == "cpu":
        return AcceptanceCheck("seconds", "not applicable", figures, limit)
    return AcceptanceCheck("seconds", _passed(seconds <= 60 * PART_MINUTES), figures, limit)


def _supervised(evidence: TrainingRecords) -> AcceptanceCheck:
    limit, facts = "the loss falls", evidence.warm_up
    if not facts or not facts["demonstrations"]:
        return AcceptanceCheck("loss", "not applicable", "there are no demonstrations", limit)
    first, last = facts["first_loss"], facts["last_loss"]
    figures = f"{first:.2f} to {last:.2f} on {facts['demonstrations']} demonstrations"
    return AcceptanceCheck("loss", _passed(last < first), figures, limit)


def _start(evidence: TrainingRecords) -> AcceptanceCheck:
    seconds = evidence.events["first_step"] - evidence.events["started"]
    figures, limit = f"{seconds:.0f} s after the start", f"at most {START_MINUTES:.0f} minutes"
    if evidence.device == "cpu":
        return AcceptanceCheck("first step", "not applicable", figures, limit)
    return AcceptanceCheck("first step", _passed(seconds <= 60 * START_MINUTES), figures, limit)


def _engine(evidence: TrainingRecords) -> AcceptanceCheck:
    engine = evidence.training.engine
    if not evidence.rows:
        return AcceptanceCheck("engine", "failed", f"{engine}: no step was made", "a first step")
    tokens = evidence.rows[0].get("perf/total_num_tokens", 0)
    figures = f"{engine}: {tokens:,.0f} tokens in the first step"
    return AcceptanceCheck("engine", _passed(tokens > 0), figures, "a first step with completions")


def _training(evidence: TrainingRecords) -> AcceptanceCheck:
    fsdp = (evidence.kill or {}).get("fsdp", {})
    steps, precision = evidence.training.steps, evidence.training.scale.precision
    made = evidence.rows[-1]["step"] if evidence.rows else 0
    version = fsdp.get("FSDP_version")
    figures = f"{made} of {steps} steps, FSDP {version or 'unknown'}, {precision}"
    return AcceptanceCheck(
        "training",
        _passed(evidence.finished and made == steps and version == 2),
        figures,
        f"{steps} steps, FSDP 2 in its checkpoint",
    )


def _weights(evidence: TrainingRecords) -> AcceptanceCheck:
    name = "engine and trainer"
    limit = f"at most {MAX_DIFFERENCE} and {MAX_LOG_DIFFERENCE} nats, in every step"
    probability, log = evidence.values(DIFFERENCE), evidence.values(LOG_DIFFERENCE)
    if not probability or not log:
        return AcceptanceCheck(name, "failed", "no step compared their log-probabilities", limit)
    figures = (
        f"a token's probability differs by {max(probability):.1e}, its log-probability by "
        f"{max(log):.1e} nats (means of the worst of {len(probability)} steps)"
    )
    equal = max(probability) <= MAX_DIFFERENCE and max(log) <= MAX_LOG_DIFFERENCE
    return AcceptanceCheck(name, _passed(equal), figures, limit)


def _resume(evidence: TrainingRecords) -> AcceptanceCheck:
    most, attempts = evidence.training.save_every, evidence.attempts
    limit = f"at most {most} steps repeated, none skipped, not from the start"
    if evidence.kill is None or len(attempts) < 2:
        return AcceptanceCheck(
            "kill and resume", "failed", "no training was killed and resumed", limit
        )
    repeated = [before[-1] - after[0] + 1 for before, after in pairwise(attempts)]
    good = all(0 <= each <= most for each in repeated) and min(a[0] for a in attempts[1:]) > 1
    figures = (
        f"SIGKILL in step {evidence.kill['step'] + 1}; it resumed with step {attempts[1][0]}, "
        f"{sum(repeated)} repeated"
    )
    return AcceptanceCheck("kill and resume", _passed(good and evidence.finished), figures, limit)


def _scores(evidence: TrainingRecords) -> AcceptanceCheck:
    """Report other scores before and after; the gate's intervals are wide, so none must rise."""
    rows = [
        f"{each['name']} {points(each['champion']['share'])} to "
        f"{points(each['challenger']['share'])} % of {each['challenger']['tasks']}"
        for each in evidence.benchmarks
        if each["champion"] and each["challenger"]
    ]
    return AcceptanceCheck("scores", "not applicable", "; ".join(rows) or "no benchmark was added")


def _gate(evidence: TrainingRecords) -> AcceptanceCheck:
    decision = evidence.decision
    compared = decision["comparison"] if decision else None
    if not decision or not compared:
        return AcceptanceCheck("gate", "failed", "no decision", "a decision")
    before, after = compared["before"], compared["after"]
    figures = (
        f"{points(before['share'])} % before, {points(after['share'])} % after: "
        f"{signed(compared['difference'])} points ({points(compared['difference_low'])} to "
        f"{points(compared['difference_high'])}) on {after['tasks']} held-out problems; "
        f"{decision['kind']}"
    )
    if evidence.device == "cpu":
        figures += "; so few steps teach nothing"
        return AcceptanceCheck("gate", "not applicable", figures, "a promotion")
    return AcceptanceCheck("gate", _passed(decision["kind"] == "promote"), figures, "a promotion")


def _memory(evidence: TrainingRecords) -> AcceptanceCheck:
    used, plan, reserve = max(evidence.values(MEMORY), default=None), evidence.plan, gib(RESERVE)
    limit = f"the plan and the {reserve:.0f} GiB that it keeps free"
    if evidence.device == "cpu":
        return AcceptanceCheck(
            "memory", "not applicable", "the planner's figures are a GPU's", limit
        )
    if used is None or plan is None:
        return AcceptanceCheck("memory", "failed", "not measured", limit)
    planned = gib(sum(plan.update.values()))
    figures = f"{used:.2f} GiB at most, {planned:.2f} planned for an update"
    return AcceptanceCheck("memory", _passed(used <= planned + reserve), figures, limit)


def _gpu(evidence: TrainingRecords) -> AcceptanceCheck:
    peak, mean = evidence.load.get("gpu_percent", (None, None))
    if peak is None or mean is None:
        return AcceptanceCheck(
            "GPU in use", "not applicable", "nvidia-smi reports none", "busy at some time"
        )
    figures = f"{mean:.0f} % busy on average, {peak:.0f} % at most"
    return AcceptanceCheck("GPU in use", _passed(peak > 0), figures, "busy at some time")


def _time(evidence: TrainingRecords) -> AcceptanceCheck:
    minutes = evidence.record.took_minutes if evidence.record else 0.0
    figures, limit = f"{minutes:.1f} minutes", f"at most {MINUTES:.0f} on one GPU"
    if evidence.device == "cpu":
        return AcceptanceCheck("time", "not applicable", figures, limit)
    return AcceptanceCheck("time", _passed(0 < minutes <= MINUTES), figures, limit)


PARTS = (
    DrivePart("machine", "started", "checked", (_machine,)),
    DrivePart("supervised", "checked", "supervised", (_supervised,)),
    DrivePart("engine", "supervised", "first_step", (_engine, _start)),
    DrivePart("reinforcement", "first_step", "killed", (_weights,)),
    DrivePart("kill and resume", "killed", "trained", (_resume, _training)),
    DrivePart("gate", "trained", "decided", (_gate, _scores)),
    DrivePart("speed", "started", "decided", (_memory, _gpu, _time)),
)
