"""One reader of a job: what it accepts, and the key and the fix that it names."""

from __future__ import annotations

import math
from typing import Any

import pytest

from sandbox.limits import MAX_LIMITS
from sandbox.protocol import AssertTest, CallTest, Invalid, Job, Limits, UnittestTest

CALL = {"style": "call", "entry_point": "f", "tests": [{"args": [1], "expected": 2}]}
STDIO = {"style": "stdio", "tests": [{"stdin": "", "stdout": "2"}]}
ASSERT = {"style": "assert", "entry_point": "f", "tests": "def check(f): pass"}


def read(problem: dict[str, Any], source: object = "f = abs") -> Job:
    return Job.read({"id": 1, "source": source, "problem": problem})


@pytest.mark.parametrize(
    ("problem", "key", "fix"),
    [
        (CALL | {"entry_point": None}, "entry_point", "name of the function"),
        (ASSERT | {"entry_point": None}, "entry_point", "name of the function"),
        (CALL | {"compare": "tokens"}, "compare", "exact or unordered or set"),
        (CALL | {"compare": "foo"}, "compare", "unordered"),
        (CALL | {"compare": ["exact"]}, "compare", "unordered"),
        (ASSERT | {"checker": "def check(*a): pass"}, "checker", "call and stdio"),
        (CALL | {"in_place": True}, "in_place", "assert"),
        (ASSERT | {"tolerance": 1e-6}, "tolerance", "call and stdio"),
        (ASSERT | {"style": "unittest", "tolerance": 0}, "tolerance", "call and stdio"),
        (STDIO | {"tests": [{"stdin": "", "stdout": 2}]}, "tests[0].stdout", "text"),
        (STDIO | {"tests": [{"stdin": ""}]}, "tests[0].stdout", "text"),
        (CALL | {"tests": [{"args": [1], "output": 2}]}, "tests[0].expected", "plain data"),
        (CALL | {"tests": [{"arg": [1], "expected": 2}]}, "tests[0].arg", "did you mean 'args'?"),
        (CALL | {"tests": [{"args": 1, "expected": 2}]}, "tests[0].args", "a list"),
        (CALL | {"tests": [{"kwargs": {1: 2}, "expected": 2}]}, "tests[0].kwargs", "text keys"),
        (CALL | {"tests": {}}, "tests", "a list"),
        (CALL | {"tests": []}, "tests", "at least one"),
        (CALL | {"tests": [5]}, "tests[0]", "expected"),
        (ASSERT | {"tests": [5]}, "tests[0]", "source"),
        (ASSERT | {"style": "unittest", "tests": [5]}, "tests[0]", "source"),
        (CALL | {"visible_tests": "abc"}, "visible_tests", "whole number"),
        (CALL | {"visible_tests": 2}, "visible_tests", "at most"),
        (CALL | {"limits": {"memory": 100}}, "limits.memory", "did you mean 'memory_mb'?"),
        (CALL | {"limits": []}, "limits", "an object"),
        (CALL | {"limmits": {}}, "limmits", "did you mean 'limits'?"),
        (CALL | {"tolerence": 1e-6}, "tolerence", "did you mean 'tolerance'?"),
        (CALL | {"tolerance": "1e-6"}, "tolerance", "a number"),
        (CALL | {"tolerance": math.nan}, "tolerance", "a number"),
        (CALL | {"packages": "numpy"}, "packages", "a list"),
        (CALL | {"style": "quiz"}, "style", "call"),
        (CALL | {"style": ["call"]}, "style", "call"),
    ],
)
def test_a_fault_names_its_key_and_a_fix(problem: dict[str, Any], key: str, fix: str) -> None:
    with pytest.raises(Invalid) as refused:
        read(problem)
    assert refused.value.key == key
    assert fix in refused.value.fix


@pytest.mark.parametrize("record", [5, [], {}, {"id": 1, "source": 5, "problem": CALL}])
def test_a_record_that_is_no_request_is_refused(record: Any) -> None:
    with pytest.raises(Invalid):
        Job.read(record)


@pytest.mark.parametrize("value", ["much", 0, -1, True, [1], math.nan, math.inf, 0.5, 1e9, 10**400])
def test_an_invalid_limit_is_refused_by_name(value: object) -> None:
    with pytest.raises(Invalid) as refused:
        read(STDIO | {"limits": {"files": value}})
    assert refused.value.key == "limits.files"


@pytest.mark.parametrize("name", MAX_LIMITS)
def test_a_limit_has_a_bound(name: str) -> None:
    most = MAX_LIMITS[name]
    assert getattr(read(STDIO | {"limits": {name: most}}).limits, name) == most
    with pytest.raises(Invalid, match=name):
        read(STDIO | {"limits": {name: most + 1}})


def test_null_means_the_default() -> None:
    job = read(STDIO | {"limits": {"wall_s": None, "files": 9.0}, "compare": None, "prompt": None})
    assert (job.limits, job.compare, job.prompt) == (Limits(files=9), "exact", "")


def test_an_expected_null_is_a_value() -> None:
    job = read(CALL | {"tests": [{"expected": None}]})
    assert job.tests == (CallTest((), {}, None),)


def test_the_source_of_a_test_may_be_given_as_text() -> None:
    for tests in ("x", ["x"], [{"source": "x"}]):
        assert read(ASSERT | {"tests": tests}).tests == (AssertTest("x"),)
        assert read(ASSERT | {"style": "unittest", "tests": tests}).tests == (UnittestTest("x"),)


@pytest.mark.parametrize(
    "job",
    [
        Job("a", "", "call", (), "f"),
        Job("a", "", "call", (AssertTest(""),), "f"),
        Job("a", "", "call", (CallTest(),)),
        Job("a", "", "quiz", (CallTest(),), "f"),
        Job("a", "", "call", (CallTest((object(),)),), "f"),
    ],
)
def test_a_job_that_cannot_be_run_is_not_sent(job: Job) -> None:
    with pytest.raises(Invalid):
        _ = job.payload
