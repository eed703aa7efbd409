"""When a pass of a test that shares the program's interpreter is accepted: only if the program
fails the decoys (sandbox/decoys/decoys.py).

A method that passes is run a second time, among its decoys. In half of all cases, at random, a
decoy is run before anything else. A program may notice that it is not the first to run, by what an
earlier run has left or used up (a pid, a time, a counter of the kernel). If the test itself always
came first, that would be all it needs to know.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from sandbox.protocol import Verdict
from sandbox.worker.messages import Result

SECRET = random.SystemRandom()
# With at most this many decoys each is run twice, and so is the test; otherwise a guess would have
# good odds.
FEW = 4
# A slower test has two decoys, drawn from the better half; otherwise it would take minutes.
SLOW_S = 1.0
FORGED = "it also passes a decoy, which no real solution does"


UNPROVEN = "it passes, as a guess would, and nothing that cannot be guessed passes beside it"


def beside_others(results: list[Result], hides: list[bool]) -> list[Result]:
    """Reject passes that a guess or a forgery could reach, unless another method proves more.

    A passing method whose expected value is hidden from the program supports all others; without
    such a method, all methods must pass. A verdict of AC for the whole job is never changed by
    this. hides: whether the program cannot see what a method expects.
    """
    passed = [row[0] == Verdict.AC for row in results]
    if any(done and hidden for done, hidden in zip(passed, hides, strict=False)) or (
        all(passed) and len(passed) == len(hides)
    ):
        return results
    return [[Verdict.WA, UNPROVEN, row[2]] if row[0] == Verdict.AC else row for row in results]


def believed(run: Callable[[str], Result], method: str, decoys: list[str]) -> Result:
    """Return the result of one method. run: returns the row of one run of a source, in a fresh
    process. decoys: the best first.
    """
    best = decoys[: max(2, len(decoys) // 2)]
    before = run(SECRET.choice(best))[0] if best and SECRET.random() < 0.5 else ""
    verdict, detail, seconds = run(method)
    if verdict != Verdict.AC:
        # Whatever it did with a decoy: a wrong answer may fit a wrong test.
        return [verdict, detail, seconds]
    runs = [method, *decoys] * (1 if len(decoys) > FEW else 2)
    if seconds > SLOW_S:
        runs = [method, *SECRET.sample(best, min(2, len(best)))]
    for text in (None, *SECRET.sample(runs, len(runs))):
        verdict_of_run, why = (before, "") if text is None else run(text)[:2]
        if verdict_of_run == Verdict.AC and text is not method:
            return [Verdict.WA, FORGED, seconds]
        if verdict_of_run == Verdict.TLE:  # a real solution is as fast as before
            return [Verdict.TLE, "in another run of it", seconds]
        if verdict_of_run != Verdict.AC and text is method:
            return [verdict_of_run, f"after it had passed: {why}"[:300], seconds]
    return [Verdict.AC, "", seconds]
