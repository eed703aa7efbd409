"""The forgery check and the decoys: correct programs pass no decoy, forgers do.

A program must not benefit from knowing about earlier runs.
"""

from __future__ import annotations

import ast
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.decoys.decoys import alone, decoys, find_test_methods
from sandbox.decoys.mutate_expected import otherwise
from sandbox.worker.forgery_check import believed
from sandbox.worker.messages import Result

DECOYS = ["d1", "d2", "d3"]


def answering(passes: Callable[[int, str], bool]) -> Callable[[str], Result]:
    """Return a program that knows the number of earlier runs and the text that runs."""
    runs: list[str] = []

    def run(text: str) -> Result:
        runs.append(text)
        return ["AC" if passes(len(runs), text) else "WA", "", 0.0]

    return run


@given(st.lists(st.sampled_from(DECOYS), unique=True))
def test_a_real_solution_passes_the_forgery_check(decoys: list[str]) -> None:
    assert believed(answering(lambda run, text: text == "test"), "test", decoys)[0] == "AC"


@given(st.lists(st.sampled_from(DECOYS), unique=True, min_size=1))
def test_a_program_that_passes_every_decoy_is_rejected(decoys: list[str]) -> None:
    assert believed(answering(lambda run, text: True), "test", decoys)[0] == "WA"


@given(st.lists(st.sampled_from(DECOYS), unique=True, min_size=1), st.integers(1, 12))
def test_a_program_that_passes_only_once_is_rejected(decoys: list[str], which: int) -> None:
    assert believed(answering(lambda run, text: run == which), "test", decoys)[0] == "WA"


@given(st.lists(st.sampled_from(DECOYS), unique=True, min_size=1))
def test_a_wrong_program_that_passes_decoys_is_only_wrong(decoys: list[str]) -> None:
    assert believed(answering(lambda run, text: text != "test"), "test", decoys) == ["WA", "", 0.0]


literals: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6)
    | st.binary(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=2), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(literals)
def test_a_mutated_expected_value_differs(value: Any) -> None:
    mutated = otherwise(ast.parse(repr(value), mode="eval").body)
    assert mutated is None or ast.literal_eval(mutated) != value


@pytest.mark.parametrize("value", [6, 60, "abcd", True, [1, 2, 3], {"a": 0.5}, (1, "x")])
def test_mutated_values_are_plausible(value: Any) -> None:
    others = [otherwise(ast.parse(repr(value), mode="eval").body) for _ in range(40)]
    values = [ast.literal_eval(other) for other in others if other]
    assert len(values) == 40 and value not in values
    assert {type(other) for other in values} == {type(value)} and {
        len(str(other)) for other in values
    } <= set(range(1, len(str(value)) + 3))
    assert type(value) is bool or len(set(map(str, values))) > 1


@pytest.mark.parametrize(
    "text",
    [
        "float('inf')",
        "-float('inf')",
        "float(10**17)",
        "sum([1e17, 1.0])",
        "abs(-1e300)",
        "len('abc')",
        "round(2.5)",
        "float('-inf')",
    ],
)
def test_a_mutated_computed_value_differs(text: str) -> None:
    other = otherwise(ast.parse(text, mode="eval").body)
    assert other is None or eval(ast.unparse(other)) != eval(text)


CASES = """
import unittest
class Base(unittest.TestCase):
    def test_twice(self):
        self.assertEqual(1, 2)
    def test_twice(self):
        expected = [1, 2]
        self.assertEqual(f(), expected)
class TestCases(Base):
    def test_early(self):
        if f():
            return
        self.assertEqual(f(), 3)
    def test_loop(self):
        for x in [1, 2]:
            self.assertIn('text', f(x))
    @unittest.skip('later')
    def test_skipped(self):
        pass
"""


def texts_of(source: str) -> dict[str, list[str]]:
    """Return, for each method, the text with it alone, followed by its decoys."""
    tree = ast.parse(source)
    return {
        name: [*map(ast.unparse, (alone(tree, c, m), *decoys(tree, c, m)))]
        for name, c, m in find_test_methods(tree)
    }


def test_each_method_gets_its_own_text() -> None:
    texts = texts_of(CASES)
    assert list(texts) == ["Base.test_twice", "TestCases.test_early", "TestCases.test_loop"]
    assert all(
        text.count("def test") == 2
        for of_method in texts.values()
        for text in of_method
        if "test_skipped" in text
    )
    assert (
        "assertEqual(1, 2)" not in "".join(texts["Base.test_twice"])
        and "expected = [1, 2]" not in texts["Base.test_twice"][1]
    )


TRAPS = """
import os, unittest
class OwnError(IndexError): pass
def fail(kind):
    raise kind
from unittest.mock import MagicMock
class TestCases(unittest.TestCase):
    def check(self, given, wanted):
        self.assertEqual(same(given), wanted)
    def test_input_is_expected(self):
        given = [1, 2]
        self.assertEqual(same(given), given)
    def test_input_is_expected_later(self):
        given = 'abc'
        result = same(given)
        self.assertEqual(result, given)
    def test_one_of_several(self):
        self.assertIsInstance(same(1), (int, float))
        self.assertTrue(isinstance(same(1), (int, float)))
        self.assertTrue(same('[a').startswith('['))
        self.assertTrue(same('b.png').endswith(('.jpg', '.png')))
        self.assertIn(same(3), [1, 2, 3])
        self.assertIn(5, same(range(100000)))
    def test_other_calls_of_a_mock(self):
        mock = MagicMock()
        for line in ['1', '2', '3']:
            mock(same(line))
        mock.assert_any_call('1')
        mock.assert_called_with('3')
    def test_end_of_a_loop(self):
        for given, wanted in [(1, 1), (2, 2), (3, 4)]:
            self.assertEqual(same(given), wanted)
            if given == 1:
                break
    def test_margins(self):
        self.assertAlmostEqual(same(1.4), 1, places=0)
        self.assertAlmostEqual(same(9), 7, delta=2.5)
        self.assertCountEqual(same('a'), ['a'])
    def test_swallowed(self):
        try:
            self.assertEqual(same(1), 1)
        except AssertionError:
            pass
        with self.assertRaises(ValueError):
            int(same('x'))
            self.assertEqual(1, 1)
    def test_helper(self):
        self.check([1], [1])
        self.check('b', 'b')
    def test_exceptions(self):
        with self.assertRaises((KeyError, IndexError)):
            same([])[1]
        with self.assertRaises(LookupError):
            same([])[1]
        self.assertRaises(Exception, int, same('x'))
    def test_own_exceptions(self):
        with self.assertRaises(OwnError):
            fail(OwnError)
        with self.assertRaises(ValueError):
            fail(UnicodeError)
        with self.assertRaises(Exception):
            fail(KeyError)
    def test_infinite(self):
        for x in (1, 2):
            self.assertEqual(same(float('inf')), float('inf'))
            self.assertEqual(same(1e17), float(10**17))
            self.assertEqual(same(1e17), sum([1e17, 1.0]))
    def test_files(self):
        for name in ('x', 'xs', 'x2'):
            open(name, 'w').close()
        self.assertTrue(os.path.exists(same('x')))
        name = same('x')
        self.assertTrue(os.path.isfile(name))
"""


def test_a_correct_program_passes_no_decoy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, texts in texts_of(TRAPS).items():
        passed = [text for text in texts if passes(text)]
        assert passed == texts[:1], (name, passed[1:])


def passes(text: str) -> bool:
    space: dict[str, Any] = {"same": lambda value: value, "__name__": "cases"}
    exec(text, space)
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(space["TestCases"]).run(result)
    assert result.testsRun == 1
    return result.wasSuccessful()


def test_an_assertion_that_may_be_unreachable_has_no_decoy() -> None:
    texts = texts_of(CASES)
    assert len(texts["TestCases.test_early"]) == 1
    assert (
        "self.assertIn('teuu', f(x))" not in texts["TestCases.test_loop"][0]
        and len(texts["TestCases.test_loop"]) > 2
    )
