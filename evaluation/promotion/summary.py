"""A decision in one or two sentences without statistical terms.

In: a recorded decision, as plain JSON of any version of the gate. Out: text. The reasons and
numbers below it are the gate's own.
"""

from __future__ import annotations

from typing import Any

from evaluation.promotion.comparison import odds
from evaluation.promotion.rate import points
from evaluation.promotion.required_sample_size import failed

WORDS = {  # failed check -> sentence
    "battery": (
        "It was trained with a reward that pays for exploits, or that was never tested for them, "
        "so its score may come from cheating."
    ),
    "provenance": "Some of its inputs cannot be found, so it could not be made again.",
    "fresh tasks": "Its tasks decided an earlier gate, so its score is not a fair test.",
    "picked apart": (
        "It was selected on the tasks that it is judged on, so its score is not a fair test."
    ),
    "measured": "It must not lose on a benchmark that was not measured.",
    "limit": "It is over a limit of the policy.",
    "not worse": "On another benchmark it got worse, or may have got worse by more than allowed.",
}


def decision_summary(decision: dict[str, Any]) -> str:
    """Return in plain words why it was promoted or refused."""
    c = decision.get("comparison")
    if decision["kind"] == "install" or c is None:
        return (
            "It was the first, and there was no champion to beat. This does not show how good it "
            "is."
        )
    scores = f"{_solved(c['after'])}, where the champion before it solved {_solved(c['before'])}"
    if c.get("k", 1) > 1:
        scores += f" (pass@{c['k']})"
    if decision["kind"] == "promote":
        return (
            f"It is better: of {c['before']['tasks']} tasks it solved {scores}; luck does not "
            "explain that."
        )
    lacked = {name for name, _ in failed(decision)}
    won = not lacked & {"win", "gain"}
    score = (
        (
            f"Its score is better: of {c['before']['tasks']} tasks it solved {scores}. That is "
            "not enough."
        )
        if won
        else _no_gain(decision, scores, lacked)
    )
    words = [WORDS[name] for name in WORDS if name in lacked]
    words.insert("battery" in lacked, score)
    if falls := [
        check
        for check in decision.get("checks", [])
        if check["name"] == "tags" and not check["passed"]
    ]:
        words.append(_worst(falls))
    return " ".join(words)


def _no_gain(decision: dict[str, Any], scores: str, lacked: set[str]) -> str:
    c, level = decision["comparison"], decision.get("level") or decision["policy"]["alpha"]
    tasks = c["before"]["tasks"]
    if decision["champion"]["content_hash"] == decision["challenger"]["content_hash"]:
        return "It is the champion itself: the same weights."
    if "win" not in lacked:
        return (
            f"It is better, but too little to be worth a version: of {tasks} tasks it solved "
            f"{scores}."
        )
    if c["p_worse"] <= level:
        return f"It is worse: of {tasks} tasks it solved {scores}; bad luck does not explain that."
    unseen = c.get("smallest_gain")
    few = (
        (
            " That does not show that the two are equal: so few tasks often miss a gain below "
            f"{points(unseen)} points."
        )
        if unseen
        else ""
    )
    if not c["won"] and not c["lost"]:
        return (
            f"It was not shown to be better: of {tasks} tasks it solved the very same "
            f"{_solved(c['after'])} as the champion before it.{few}"
        )
    luck = odds(c["p_better"] if c["difference"] > 0 else c["p_worse"])
    return (
        f"It was not shown to be better: of {tasks} tasks it solved {scores}, and luck alone "
        f"makes such a difference {luck}.{few}"
    )


def _worst(falls: list[dict[str, Any]]) -> str:
    worst = max(
        falls, key=lambda check: float(check["numbers"]["before"] - check["numbers"]["after"])
    )
    was, now = (points(worst["numbers"][side]) for side in ("before", "after"))
    return (
        f"It got worse by more than chance explains, most of all on {worst['about']}: from {was} "
        f"to {now} % solved."
    )


def _solved(rate: dict[str, Any]) -> str:
    return f"{points(rate['share'])} %" if rate.get("solved") is None else str(rate["solved"])
