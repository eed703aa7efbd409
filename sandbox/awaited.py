"""What a test awaits of a program: it runs to its end there, when the test asks for it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sandbox.connection import Program


def result_of(program: Program, number: Any, age: int) -> Coroutine[Any, Any, Any]:
    """A coroutine of the program, by its number. age: how often the function under test had been called when it came."""
    question = (object(),)

    async def result() -> Any:
        return program.ask_weighed(age, question, "await", number)

    return result()


def elements_of(program: Program, number: Any, age: int) -> AsyncIterator[Any]:
    """An asynchronous generator of the program."""
    question = (object(),)

    async def elements() -> AsyncIterator[Any]:
        while True:
            try:
                answer = program.ask_weighed(age, question, "await", number)
            except StopAsyncIteration:
                return
            yield answer

    return elements()
