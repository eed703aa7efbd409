"""What a message from a program's process means for its test. The program may have written any of
them, so none ever results in INFRA.
"""

from __future__ import annotations

from typing import Any

from sandbox.verdict import Verdict
from sandbox.wire import NotPlain, parse
from sandbox.worker.literal import Claim
from sandbox.worker.watch import Stop, Watch

Result = list[Any]  # verdict, detail, wall seconds: a row of the report
NOT_RUN = "not run: the program had been stopped"


def of_tests(watch: Watch, tests: list[tuple[Claim, ...]]) -> list[Result] | None:
    """Return rows for tests whose calls have been sent; fewer if the program had to be stopped.
    Returns None if only a judge can decide.
    """
    results: list[Result] = []
    for at, test in enumerate(tests):
        message: bytes | Stop = b""
        verdict, detail = Verdict.AC, ""
        for nth, claim in enumerate(test, 1):
            message = watch.next()
            if (decided := of_claim(message, claim)) is None:
                return None
            verdict, detail = decided
            if verdict != Verdict.AC:
                if nth < len(test) and at + 1 < len(tests) and not isinstance(message, Stop):
                    return None  # the judge would skip this test's other calls before the next test
                break
        results.append(row(verdict, detail, watch))
        if isinstance(message, Stop):
            break
        watch.begin()
    return results


def of_claim(message: bytes | Stop, claim: Claim) -> tuple[Verdict, str] | None:
    """Decide one claim. Returns None if only a judge can."""
    if isinstance(message, Stop):
        return message.verdict, message.detail
    kind, body = message[:1], message[1:]
    if kind == b"X":
        return exception(body)
    if kind != b"R":
        return None if kind in (b"N", b"T") else (Verdict.RE, "broken message")
    try:
        holds = claim.holds(body)
    except NotPlain as error:
        return Verdict.RE, str(error)
    except RecursionError:
        return Verdict.WA, "nested deeper than what was expected"
    return (
        None
        if holds is None
        else (Verdict.AC, "")
        if holds
        else (Verdict.WA, f"got {body[:200].decode('utf-8', 'replace')}")
    )


def of_judge(message: bytes | Stop, at: int, watch: Watch) -> tuple[Verdict, str, bool]:
    """Return a judge's verdict on a test, its reason, and whether it depends on what the program
    itself said. Where the judge reports that the program is gone, return what ended the program.
    """
    if not isinstance(message, Stop) and message[:1] == b"V":
        fields = parse(message[1:])
        if (
            type(fields) is list
            and len(fields) == 4
            and fields[0] == at
            and fields[1] in ("AC", "WA", "RE", "MLE", "OLE")
        ):
            return Verdict(fields[1]), str(fields[2]), fields[3] is True
    # The program may have caused the end of the judge, so it is never INFRA.
    if isinstance(message, Stop) and "judge" in watch.exits:
        verdict = message.verdict if message.verdict is Verdict.TLE else Verdict.WA
        return verdict, f"the process of the tests ended: {message.detail}", False
    stop = message
    if not isinstance(message, Stop):
        status = watch.exit()
        stop = status if isinstance(status, Stop) else watch.ending(status)
    assert isinstance(stop, Stop)
    return stop.verdict, stop.detail, False


def not_loaded(message: bytes | Stop) -> tuple[Verdict, str]:
    """Return why there is nothing to call, from the first message after the set-up. The program may
    have written it, so it is never INFRA.
    """
    if isinstance(message, Stop):
        return message.verdict, message.detail
    kind, body = message[:1], message[1:]
    if kind == b"C":
        return Verdict.CE, body[:300].decode("utf-8", "replace")
    if kind == b"X":
        return exception(body)
    return Verdict.RE, "the program ended while being loaded" if kind == b"G" else "broken message"


def exception(body: bytes) -> tuple[Verdict, str]:
    try:
        fields = parse(body[:4096])
    except NotPlain:
        fields = None
    if type(fields) is not list or len(fields) != 3:
        return Verdict.RE, "broken message"
    text = f"raised {str(fields[0])[:100]}: {str(fields[1])[:300]}".encode(
        "utf-8", "backslashreplace"
    ).decode()
    return (Verdict.MLE if fields[2] is True else Verdict.RE), text


def complete_rows(results: list[Result], tests: int) -> list[Result]:
    """Return a row for each test. Tests that were not run get the verdict that stopped the program,
    which is never AC.
    """
    if not results:
        results = [[Verdict.MLE, "out of memory", 0.0]]
    rest = results[-1][0] if results[-1][0] != Verdict.AC else Verdict.RE
    return results + [[rest, NOT_RUN, 0.0] for _ in range(tests - len(results))]


def row(verdict: Verdict, detail: str, watch: Watch) -> Result:
    return [verdict, detail, watch.seconds()]
