"""The processes that verify mathematics: batches, limits, crashes, and their end with the owner."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from rewards.judging import judge, judge_questions
from rewards.mathematics.verifier import Case, Verifier
from rewards.question import Question
from sandbox.protocol import Verdict
from tests.children import children

WORKER = "mathematics/worker.py"
HALF = Question("q/1", "Half of one?", "math", ("\\frac{1}{2}",))
STALLS = ["x^{x^{x^{x^{x^{9999%d}}}}}", "9^{9^{9^{9^{%d}}}}"]


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    opened = Verifier()
    yield opened
    opened.close()


def half(answer: str) -> Case:
    return Case(("\\frac{1}{2}",), answer)


def test_a_batch_keeps_its_order(verifier: Verifier) -> None:
    cases = [half(f"{k}/{2 * k + k % 2}") for k in range(1, 30)]
    assert verifier.equal_all(cases + cases[:3]) == [k % 2 == 0 for k in [*range(1, 30), 1, 2, 3]]


def test_one_of_several_correct_answers_is_enough(verifier: Verifier) -> None:
    references = ("3", "", "0.5")
    assert verifier.equal_all([Case(references, "1/2"), Case(references, "4")]) == [True, False]


def test_a_case_without_a_reference_is_refused(verifier: Verifier) -> None:
    with pytest.raises(ValueError, match="reference answer"):
        verifier.equal_all([Case((" ",), "1")])


def test_an_answer_of_any_characters_is_decided(verifier: Verifier) -> None:
    assert verifier.equal_all([half("\ud800"), half("\0"), half("")]) == [False] * 3


@pytest.mark.slow
def test_a_stalling_expression_is_wrong_and_others_are_decided(verifier: Verifier) -> None:
    cases = [*(Case(("x+1",), stall % 9) for stall in STALLS), half("2/4")]
    assert verifier.equal_all(cases) == [False, False, True]


@pytest.mark.slow
def test_a_batch_of_stalling_expressions_ends_in_time() -> None:
    single = Verifier(workers=1)
    stalls = [Case(("x+1",), stall % k) for k in range(60) for stall in STALLS]
    begun = time.monotonic()
    verdicts = single.equal_all([*stalls, half("2/4")], batch_s=1.0)
    single.close()
    assert time.monotonic() - begun < 60.0
    assert None in verdicts
    assert True not in verdicts[:-1]


def test_a_case_without_time_left_has_no_verdict(verifier: Verifier) -> None:
    assert verifier.equal_all([half("2/4"), half("\\frac{1}{2}")], batch_s=-10.0) == [None, True]


@pytest.mark.slow
def test_a_killed_verifier_process_is_replaced(verifier: Verifier) -> None:
    assert verifier.equal_all([half("2/4")]) == [True]
    for process in children(WORKER):
        process.kill()
    assert verifier.equal_all([half("3/6")]) == [True]


def test_a_verifier_that_cannot_start_gives_infra(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = Verifier()
    monkeypatch.setattr(sys, "executable", "/bin/false")
    monkeypatch.setattr("rewards.judging.verifier", lambda: lost)
    assert judge_questions([(HALF, "\\boxed{2/4}")])[0].verdict is Verdict.INFRA
    # comparing the text alone decides this one
    assert judge_questions([(HALF, "\\boxed{\\frac{1}{2}}")])[0].verdict is Verdict.AC


@pytest.mark.slow
def test_threads_share_the_processes(verifier: Verifier) -> None:
    cases = [half(f"{k}/{2 * k}") for k in range(2, 42)]
    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(lambda case: verifier.equal_all([case])[0], cases))
    assert len(children(WORKER)) <= 2 * verifier.workers  # those of `judging`, too


def test_a_mixed_batch_keeps_its_order(verifier: Verifier, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rewards.judging.verifier", lambda: verifier)
    fact = Question("q/2", "Where?", "qa", ("here",))
    pairs = [
        (HALF, "\\boxed{2/4}"),
        (fact, "Answer: there"),
        (HALF, "\\boxed{1/3}"),
        (fact, "here"),
    ]
    assert [judged.report.verdict for judged in judge(None, pairs)] == [
        Verdict.AC,
        Verdict.WA,
        Verdict.WA,
        Verdict.AC,
    ]


OWNER = """
import os, sys, threading, time
from rewards.mathematics.verifier import Case, Verifier
verifier = Verifier()
assert verifier.equal_all([Case(("1/2",), "2/4")]) == [True]
heir = os.fork()  # keeps the pipes of the verifier open
if heir:
    cases = [Case(("x+1",), "x^{x^{x^{x^{x^{9999%d}}}}}" % k) for k in range(50)]
    threading.Thread(target=verifier.equal_all, args=(cases,)).start()
    time.sleep(0.5)
    print(heir, flush=True)
time.sleep(60)
"""


@pytest.mark.slow
def test_a_killed_owner_leaves_no_verifier() -> None:
    root = Path(__file__).parents[2]
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER],
        stdout=subprocess.PIPE,
        text=True,
        cwd=root,
        env=os.environ | {"PYTHONPATH": str(root)},
    )
    assert owner.stdout
    heir = int(owner.stdout.readline())
    left = children(WORKER, owner.pid)
    owner.kill()
    owner.wait()
    _, alive = psutil.wait_procs(left, timeout=20.0)
    os.kill(heir, signal.SIGKILL)
    owner.stdout.close()
    assert left
    assert not alive
