"""Chats in the template of a model that takes no system message."""

from __future__ import annotations

from typing import Any

import pytest

from problems.chat_template import accepted, rendered
from problems.columns import ProblemError
from verl_jobs.sft.tiny_model import train_tokenizer

EACH = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
GEMMA = (
    "{% if messages[0].role == 'system' %}{{ raise_exception('System role not supported') }}"
    "{% endif %}{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate') }}{% endif %}"
    "<{{ m.role }}>{{ m.content }}{% endfor %}"
)
SILENT = EACH.replace("<{{", "{% if m.role != 'system' %}<{{").replace("t }}", "t }}{% endif %}")
SYSTEM = {"role": "system", "content": "Be short."}
CHAT = [
    {"role": "user", "content": "Write f."},
    {"role": "assistant", "content": "def f(): pass"},
    {"role": "user", "content": "Now g."},
]


def tokenizer(template: str) -> Any:
    made = train_tokenizer(["def f(x): return x"] * 4, 300)
    made.chat_template = template
    return made


def test_a_template_with_a_system_role_gets_the_chat_as_it_is() -> None:
    assert accepted(tokenizer(EACH), [SYSTEM, *CHAT]) == [SYSTEM, *CHAT]


@pytest.mark.parametrize("template", [GEMMA, SILENT])
def test_a_system_message_that_the_template_does_not_take_heads_the_users(template: str) -> None:
    assert rendered(tokenizer(template), [SYSTEM, *CHAT]) == (
        "<user>Be short.\n\nWrite f.<assistant>def f(): pass<user>Now g."
    )


@pytest.mark.parametrize("chat", [CHAT[1:], [SYSTEM, *CHAT[1:]], [*CHAT, CHAT[0]]])
def test_a_chat_that_is_refused_in_any_form_names_its_roles(chat: list[dict[str, str]]) -> None:
    roles = ", ".join(message["role"] for message in chat)
    with pytest.raises(ProblemError, match=rf"template refuses a chat of {roles} \(.+\): change"):
        accepted(tokenizer(GEMMA), chat)
