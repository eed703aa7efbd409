"""When a pass of a test that shares the program's interpreter is believed: not while it passes a decoy too (sandbox/decoys.py).

A method that passes is run a second time, among its decoys, and in half of all cases a decoy is run before anything else, by a draw that no program
can know. For a program may learn that it is not the first to run, by whatever an earlier run has left or used up (the number of a process, a time, a
counter of the kernel): if the test itself always came first, that would be all it has to know.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from sandbox.messages import Result
from sandbox.protocol import Verdict

SECRET = random.SystemRandom()
FEW = 4  # decoys: then each is run twice, and so is the test; or chance would be on the side of who guesses
SLOW_S = 1.0  # a test that takes longer has two decoys, drawn from the better half; or it would take minutes
FORGED = "it also passes a decoy, which no real solution does"


UNPROVEN = "it passes, as a guess would, and nothing that cannot be guessed passes beside it"


def beside_others(results: list[Result], hides: list[bool]) -> list[Result]:
    """The rows of a test's methods, where those that a guess may pass, or a forgery, count beside one that neither does; where there is none of that
    kind, beside all others. hides: whether the program cannot see what a method expects. A verdict of AC for the whole is never changed by this."""
    passed = [row[0] == Verdict.AC for row in results]
    if any(done and hidden for done, hidden in zip(passed, hides, strict=False)) or (
        all(passed) and len(passed) == len(hides)
    ):
        return results
    return [[Verdict.WA, UNPROVEN, row[2]] if row[0] == Verdict.AC else row for row in results]


def believed(run: Callable[[str], Result], method: str, decoys: list[str]) -> Result:
    """What one method comes to. run: gives the row of one run of such a text, in a fresh process. decoys: the best first."""
    best = decoys[: max(2, len(decoys) // 2)]
    before = run(SECRET.choice(best))[0] if best and SECRET.random() < 0.5 else ""
    verdict, detail, seconds = run(method)
    if verdict != Verdict.AC:
        return [
            verdict,
            detail,
            seconds,
        ]  # whatever it made of a decoy: a wrong answer may fit a wrong test
    runs = [method, *decoys] * (1 if len(decoys) > FEW else 2)
    if seconds > SLOW_S:
        runs = [method, *SECRET.sample(best, min(2, len(best)))]
    for text in (None, *SECRET.sample(runs, len(runs))):
        heard, why = (before, "") if text is None else run(text)[:2]
        if heard == Verdict.AC and text is not method:
            return [Verdict.WA, FORGED, seconds]
        if heard == Verdict.TLE:  # a real one is as fast as it was
            return [Verdict.TLE, "in another run of it", seconds]
        if heard != Verdict.AC and text is method:
            return [heard, f"after it had passed: {why}"[:300], seconds]
    return [Verdict.AC, "", seconds]
