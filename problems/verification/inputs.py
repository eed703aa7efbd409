"""Generate new test inputs by varying those that the tests use.

One value is changed a little, or the arguments of two tests are mixed.

In: a problem. Out: inputs, as tests without expected outputs. The preconditions of a statement ("a
sorted list", "n is positive") cannot be read here, so a generated input stays within what the tests
show. It has no empty list, negative number, descending step, repetition, longer number or other
kind of character where no test has one at that place, and no other order between two arguments.
Where the tests do show such an edge case, it is tried first.
"""

from __future__ import annotations

import ast
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, combinations, islice, pairwise, repeat
from typing import Any

from artifacts.parsing import parse
from problems.encoding import dumps
from problems.schema import Problem
from problems.syntax import tree_of
from sandbox.styles.style import Input

Fact = tuple[object, ...]
DRAWS = 12  # tries per wanted input
FORM = {"is", "names", "fields", "shape"}  # facts that no generated input changes
EDGES: tuple[Any, ...] = (0, 1, -1, 2, "", "a", [], (), 0.0, 0.5, -1.0)
WIDE_EDGES = (10, 100, 1000, -10, "A", " ", "aA", "é", "a b", "1", 1.5, 1e-3, -0.5, True, False)
SHIFTED = 0.15  # share of the draws of a sequence of numbers that move all of them
EQUAL = 4  # inputs with two equal arguments that are tried
BOUNDS = 3  # at most one generated input of so many has a number at a bound by a list
GROWN = 0.6  # share of wide draws that vary a generated input again
LONG_NUMBER = re.compile(r"\d{6}")  # a loop over so many takes long
LONGEST = 1000  # characters of a wide input, as JSON; more if the tests have more


def inputs_of_tests(problem: Problem) -> list[Input]:
    """Return the inputs of the tests that can be read as plain data; none for unittests."""
    inputs = (each for test in problem.tests for each in problem.kind.inputs(test, parse))
    return [each for each in inputs if _is_plain(each)]


def _is_plain(value: Any) -> bool:
    try:
        dumps(value)
    except (ValueError, TypeError, RecursionError):
        return False
    return True


def generate_inputs(problem: Problem, count: int, *, wide: bool = False) -> list[Input]:
    """Return at most `count` inputs that no test uses; deterministic for a problem.

    wide: only types and the form must be as in the tests, and generated inputs are varied again.
    Such an input may break a precondition.
    """
    known = inputs_of_tests(problem)
    if not known:
        return []
    rng = random.Random(problem.problem_id)
    edges = _edges(problem.solutions, WIDE_EDGES if wide else ())
    vary, facts = (
        (_another_call, _call_facts)
        if problem.kind.has_entry_point
        else (_another_text, _text_facts)
    )
    seen: set[Fact] = {fact for test_input in known for fact in facts(test_input)}
    varies = _varying(seen)
    texts = {dumps(test_input) for test_input in known}
    longest = max(LONGEST, *map(len, texts))
    long_numbers = any(map(LONG_NUMBER.search, texts))
    result: list[Input] = []
    special = chain(islice(_with_equal(known), EQUAL if wide else 0), _at_bounds(known))
    bounds = islice(special if problem.kind.has_entry_point else (), DRAWS * count)
    drawn = (
        vary([*known, *result] if wide and rng.random() < GROWN else known, rng, edges)
        for _ in range(DRAWS * count)
    )
    for candidate, most in chain(zip(bounds, repeat(count // BOUNDS)), zip(drawn, repeat(count))):
        if (
            len(result) < most
            and all(
                fact in seen or fact[:-1] in varies or (wide and FORM.isdisjoint(fact))
                for fact in facts(candidate)
            )
            and (text := dumps(candidate)) not in texts
            and not (
                wide and (len(text) > longest or (LONG_NUMBER.search(text) and not long_numbers))
            )
        ):
            texts.add(text)
            result.append(candidate)
    return result


def _varying(seen: set[Fact]) -> set[Fact]:
    """Return places whose length differs between the tests.

    The length of a pair, or of a time like "12:30", must not vary.
    """
    lengths = Counter(fact[:-1] for fact in seen if fact[-2] == "length")
    return {place for place, count in lengths.items() if count > 1}


def _edges(solutions: Sequence[str], more: Sequence[Any]) -> tuple[Any, ...]:
    """Return likely edge cases: simple values, and the solutions' constants and neighbours."""
    edges: dict[str, Any] = {repr(edge): edge for edge in (*EDGES, *more)}
    for solution in solutions:
        if (tree := tree_of(solution)) is None:
            continue
        constants = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
        near = [
            sign * value + step
            for value in constants
            if type(value) is int
            for sign in (1, -1)
            for step in (-1, 0, 1)
        ]
        edges |= {
            repr(value): value
            for value in (*near, *(value for value in constants if isinstance(value, (str, float))))
        }
    return tuple(edges.values())


def _another_call(known: Sequence[Input], rng: random.Random, edges: Sequence[Any]) -> Input:
    """Change one argument of a test, or take it from another test."""
    one, other = rng.choice(known), rng.choice(known)
    args, kwargs = list(one["args"]), dict(one["kwargs"])
    places = [*range(len(args)), *kwargs]
    if not places:
        return one
    place = rng.choice(places)
    container: Any = args if isinstance(place, int) else kwargs
    others = other["args"] if isinstance(place, int) else other["kwargs"]
    if shifted := _shifted(container[place], [*args, *kwargs.values()], rng):
        container[place] = shifted
        return {"args": args, "kwargs": kwargs}
    replacement = (
        others[place]
        if (place in others if isinstance(others, dict) else place < len(others))
        else container[place]
    )
    container[place] = (
        replacement if rng.random() < 0.2 else _another(container[place], replacement, rng, edges)
    )
    return {"args": args, "kwargs": kwargs}


def _shifted(value: Any, others: Sequence[Any], rng: random.Random) -> Any:
    """Return a sequence of numbers moved by a number among the other arguments, or None.

    Tests seldom have all elements on the other side of a threshold.
    """
    steps = [other for other in others if type(other) in (int, float)]
    if not steps or not _are_numbers(value) or rng.random() >= SHIFTED:
        return None
    step = rng.choice(steps) * rng.choice((1, -1))
    return type(value)(item + step for item in value)


def _with_equal(known: Sequence[Input]) -> Iterator[Input]:
    """Yield tests with the same value for two arguments of a type."""
    for test in known:
        args = list(test["args"])
        for one, other in combinations(range(len(args)), 2):
            if type(args[one]) is type(args[other]) and args[one] != args[other]:
                equal = [*args[:other], args[one], *args[other + 1 :]]
                yield {"args": equal, "kwargs": dict(test["kwargs"])}


def _at_bounds(known: Sequence[Input]) -> Iterator[Input]:
    """Yield tests with a number that is a bound by a list beside it: its least difference, an end,
    its sum or count. Only there does "less than" differ from "at most".
    """
    bounds: tuple[Callable[[Sequence[Any]], Any], ...] = (_least_gap, max, min, sum, len)
    for bound in bounds:
        for test in known:
            args, kwargs = list(test["args"]), dict(test["kwargs"])
            lists = [each for each in (*args, *kwargs.values()) if each and _are_numbers(each)]
            for holder in (args, kwargs):
                places: Any = range(len(args)) if holder is args else list(kwargs)
                for place in places:
                    value: Any = holder[place]
                    if lists and type(value) in (int, float):
                        holder[place] = type(value)(bound(lists[0]))
                        yield {"args": [*args], "kwargs": {**kwargs}}
                        holder[place] = value


def _are_numbers(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(type(item) in (int, float) for item in value)


def _least_gap(numbers: Sequence[Any]) -> Any:
    return min((after - before for before, after in pairwise(sorted(numbers))), default=0)


def _another(
    value: Any, other: Any, rng: random.Random, edges: Sequence[Any], depth: int = 0
) -> Any:
    """Return a value near this one, of the same type if possible.

    other: the value that another test has in its place.
    """
    if depth > 3:
        return value
    same = [edge for edge in edges if type(edge) is type(value)]
    if same and rng.random() < 0.4:
        return rng.choice(same)
    if type(other) is not type(value):
        other = value
    match value:
        case bool():
            return not value
        case int():
            return rng.choice(
                (
                    value + 1,
                    value - 1,
                    -value,
                    value * 2,
                    other + 1,
                    other - 1,
                    (value + other) // 2,
                )
            )
        case float():
            return rng.choice((value + 1, -value, value / 2, value + 0.5, other - 1))
        case str() | list() | tuple():
            return _another_sequence(value, other, rng, edges, depth)
        case set() | frozenset():
            return rng.choice((value | other, value & other, value - other))
        case dict() if value:
            key = rng.choice(list(value))
            changed = {
                **value,
                key: _another(value[key], other.get(key, value[key]), rng, edges, depth + 1),
            }
            return rng.choice(
                (changed, {**value, **other}, {name: value[name] for name in value if name != key})
            )
    return value


def _another_sequence(
    value: Any, other: Any, rng: random.Random, edges: Sequence[Any], depth: int
) -> Any:
    if not value:
        return other[:1]
    at, till = sorted((rng.randrange(len(value)), rng.randrange(len(value))))
    ways: list[Callable[[], Any]] = [
        lambda: value[:at] + value[at + 1 :],
        lambda: value[: at + 1] + value[at:],  # duplicates an element
        lambda: value[at:till],
        lambda: (
            value[:at]
            + value[till : till + 1]
            + value[at + 1 : till]
            + value[at : at + 1]
            + value[till + 1 :]
            if at < till
            else value
        ),
        lambda: value[::-1],
        lambda: value + other,
        lambda: value[:1],
        lambda: other[: len(value)],
    ]
    if not isinstance(value, str):
        inner = _another(
            value[at], rng.choice(other) if other else value[at], rng, edges, depth + 1
        )
        ways += [lambda: value[:at] + type(value)([inner]) + value[at + 1 :]] * 6
    return rng.choice(ways)()


def _call_facts(test_input: Input) -> Iterator[Fact]:
    values = [*enumerate(test_input["args"]), *test_input["kwargs"].items()]
    yield ("names", len(test_input["args"]), *sorted(test_input["kwargs"]))
    for name, value in values:
        yield from _facts(value, (name,))
    for (one, left), (two, right) in combinations(values, 2):
        a, b = (len(value) if hasattr(value, "__len__") else value for value in (left, right))
        if isinstance(a, (int, float)) and isinstance(b, (int, float)):
            yield (one, two, (a > b) - (a < b))


def _facts(value: Any, path: tuple[object, ...]) -> Iterator[Fact]:
    """Yield the facts that distinguish a value from the simplest of its kind.

    A value has all facts up to its size, so smaller values are allowed too.
    """
    yield (*path, "is", type(value).__name__)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        yield (*path, "sign", (value > 0) - (value < 0))
        yield from (
            (*path, "digits", size)
            for size in range(len(str(abs(int(value)))) if abs(value) < 1e18 else 19)
        )
    elif isinstance(value, str):
        yield from ((*path, "letter", _kind_of(letter)) for letter in set(value))
    if isinstance(value, (str, list, tuple, set, frozenset, dict)):
        yield from (
            ((*path, "size", size) for size in range(len(value).bit_length()))
            if value
            else iter([(*path, "empty")])
        )
        yield (*path, "length", len(value))
    if isinstance(value, (list, tuple)):
        yield from _order(value, path)
    if isinstance(value, dict):
        yield from (
            fact
            for key, inner in value.items()
            for fact in (*_facts(key, (*path, "key")), *_facts(inner, (*path, "value")))
        )
    elif not isinstance(value, str) and hasattr(value, "__iter__"):
        fixed = isinstance(value, tuple)
        if fixed:
            yield (*path, "fields", len(value))
        yield from (
            fact
            for at, inner in enumerate(value)
            for fact in _facts(inner, (*path, at if fixed else "item"))
        )


def _order(value: Sequence[Any], path: tuple[object, ...]) -> Iterator[Fact]:
    for a, b in pairwise(value):
        try:
            yield (*path, "step", (a > b) - (a < b))
        except TypeError:
            yield (*path, "step", "none")
    if len({repr(item) for item in value}) < len(value):
        yield (*path, "repeats")
    if len({len(item) for item in value if hasattr(item, "__len__")}) > 1:
        yield (*path, "ragged")


def _kind_of(letter: str) -> str:
    return (
        "a"
        if letter.islower()
        else "A"
        if letter.isupper()
        else "0"
        if letter.isdigit()
        else letter
    )


def _another_text(known: Sequence[Input], rng: random.Random, edges: Sequence[Any]) -> Input:
    """Change one word of a line to another word of that line, or a whole number to a neighbour.

    The first line stays the same, because it holds counts.
    """
    lines = [line.split(" ") for line in rng.choice(known)["stdin"].split("\n")]
    places = [
        (at, nth)
        for at, line in enumerate(lines)
        for nth, word in enumerate(line)
        if word and (at > 0 or len(lines) <= 2)
    ]
    if places:
        at, nth = rng.choice(places)
        word, rest = lines[at][nth], [other for other in lines[at] if other]
        whole = word.lstrip("-").isdigit()
        near = (
            [str(int(word) + 1), str(int(word) - 1)] if whole else [word[::-1], word[1:] + word[:1]]
        )
        near += [str(edge) for edge in edges if whole and type(edge) is int]
        lines[at][nth] = rng.choice([*near, rng.choice(rest)])
    return {"stdin": "\n".join(" ".join(line) for line in lines)}


def _text_facts(test_input: Input) -> Iterator[Fact]:
    lines = test_input["stdin"].split("\n")
    yield ("shape", *(len(line.split(" ")) for line in lines))
    for at, line in enumerate(lines):
        for word in line.split(" "):
            value = int(word) if word.lstrip("-").isdigit() and len(word) < 19 else word
            yield from _facts(value, (min(at, 1), "word"))
