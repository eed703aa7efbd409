"""How many tokens a server that refuses a request would take, from the words of the refusal.

Tried on the wordings of OpenAI, vLLM (five versions), SGLang, llama.cpp and TGI.
"""

from __future__ import annotations

import re

# Prompt and completion together, or the prompt alone, do not fit.
_TOO_LONG = re.compile(
    r"context[ _](?:length|size|window)|maximum (?:input|model) len|max_model_len|"
    r"(?:input|prompt|inputs?`?) (?:is |are |was )?too long|longer than the model|"
    r"max_new_tokens`? must be|must have less than|max_\w*tokens\b.{0,40}too large",
    re.IGNORECASE,
)
_OTHER_KEY = re.compile(
    r"(?:unsupported|unrecognized|unknown|not supported|not permitted).*max_completion_tokens",
    re.IGNORECASE | re.DOTALL,
)
_CONTEXT = re.compile(
    r"(?:context|model) (?:length|size|window)(?: is| of| \()?(?: only)? ?(\d+)|must be <= (\d+)|"
    r'"n_ctx": ?(\d+)|must have less than (\d+)',
    re.IGNORECASE,
)
_PROMPT = re.compile(
    r"(\d+) (?:in the (?:messages|prompt)|(?:tokens )?from the input|(?:prompt|input) tokens|"
    r'`inputs` tokens)|"n_prompt_tokens": ?(\d+)|(?:request|input) \((\d+) tokens\)|Given: (\d+)|'
    r"messages resulted in (\d+) tokens|prompt \(length (\d+)\)",
    re.IGNORECASE,
)
_MOST = re.compile(r"at most (\d+) completion tokens", re.IGNORECASE)


def too_long(refusal: str) -> bool:
    """Return whether a server refuses a request because it exceeds the model's context."""
    return bool(_TOO_LONG.search(refusal))


def wants_other_key(refusal: str) -> bool:
    """Return whether a server takes `max_completion_tokens` in place of `max_tokens`."""
    return bool(_OTHER_KEY.search(refusal))


def tokens_left(refusal: str, asked: int, before: str = "") -> int:
    """Return the tokens to ask for instead of `asked`, fewer; 0 if the prompt alone is too long.

    Half of `asked` if the refusal names no numbers. before: the refusal of more tokens, if any.
    """
    if most := _MOST.search(refusal):
        return min(int(most[1]), asked - 1)
    context, prompt = _number(_CONTEXT, refusal), _number(_PROMPT, refusal)
    if context and prompt:
        if prompt > context and not before:  # vLLM 0.15 subtracts `asked` from its context
            return max(0, context + asked - prompt)
        return max(0, min(context - prompt, asked - 1))
    return asked // 2


def _number(pattern: re.Pattern[str], text: str) -> int | None:
    match = pattern.search(text)
    return int(next(group for group in match.groups() if group)) if match else None
