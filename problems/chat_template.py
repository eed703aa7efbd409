"""Render a chat with a tokenizer's template, also where the template takes no system message.

In: a tokenizer of transformers, and a chat. Out: the chat that its template accepts, or its text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from problems.columns import ProblemError

Chat = Sequence[dict[str, str]]


def accepted(tokenizer: Any, chat: Chat) -> list[dict[str, str]]:
    """Return the chat, with the system message at the head of the first user's if the template
    refuses it or leaves it out, as Gemma's does.

    Raises ProblemError for a chat that the template refuses in this form too.
    """
    return _accepted(tokenizer, chat)[0]


def rendered(tokenizer: Any, chat: Chat) -> str:
    """Return the text of the chat with the head of the reply; see `accepted`."""
    return _accepted(tokenizer, chat)[1]


def _accepted(tokenizer: Any, chat: Chat) -> tuple[list[dict[str, str]], str]:
    from jinja2 import TemplateError

    forms = [[dict(message) for message in chat]]
    system = ""
    if [message["role"] for message in chat[:2]] == ["system", "user"]:
        system, user = (str(message["content"]).strip() for message in chat[:2])
        forms.append([dict(chat[1], content=f"{system}\n\n{user}".strip()), *forms[0][2:]])
    refusal = ""
    for form in forms:
        try:
            text = tokenizer.apply_chat_template(form, tokenize=False, add_generation_prompt=True)
        except (TemplateError, TypeError) as error:
            refusal = refusal or " ".join(str(error).split())[:200]
            continue
        if form is forms[-1] or system in text:
            return form, str(text)
    roles = ", ".join(message["role"] for message in forms[0])
    raise ProblemError(
        f"the model's chat template refuses a chat of {roles} ({refusal})",
        "change the roles of the messages, or use a model whose template takes them",
    )
