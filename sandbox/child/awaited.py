"""Awaitables of a program: they run in the program's process, when the test awaits them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sandbox.child.connection import Program


def result_of(program: Program, number: Any, age: int) -> Coroutine[Any, Any, Any]:
    """Return a coroutine of the program, by its number. age: number of calls of the function under
    test when it arrived.
    """
    question = (object(),)

    async def result() -> Any:
        return program.request_weighed(age, question, "await", number)

    return result()


def elements_of(program: Program, number: Any, age: int) -> AsyncIterator[Any]:
    """Return an asynchronous generator of the program."""
    question = (object(),)

    async def elements() -> AsyncIterator[Any]:
        while True:
            try:
                answer = program.request_weighed(age, question, "await", number)
            except StopAsyncIteration:
                return
            yield answer

    return elements()
