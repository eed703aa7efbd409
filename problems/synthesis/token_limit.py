"""How many tokens a server that refuses a request would take, from the words of the refusal.

Tried on the wordings of OpenAI, vLLM (six versions), SGLang, llama.cpp, TGI, TensorRT-LLM, LMDeploy
and of hosted models. What decides are the numbers, if the refusal has any.
"""

from __future__ import annotations

import re
from itertools import product

_PROMPTS = r"(?:prompt|inputs?)`? (?:(?:is|are|was) )?(?:too long|length|must have)"
_TOKENS = re.compile(
    rf"tokens?\b|context|max_(?:seq|model)_len|session_len|max_length|{_PROMPTS}", re.IGNORECASE
)
_LIMIT = re.compile(
    r"exceed|too (?:long|large|many)|(?:long|larg|great)er than|(?:less|lower|more) than|at most|"
    r"maximum|\blimit|range|overflow|[<>]=?",
    re.IGNORECASE,
)
# The prompt, or prompt and completion together, rather than a maximum of the completion alone.
_CONTEXT = re.compile(
    r"context|prompt|max_(?:seq|model)_len|session_len|max_length|too many tokens|token count|"
    rf"inputs?`? tokens?|{_PROMPTS}",
    re.IGNORECASE,
)
_OTHER_KEY = re.compile(
    r"unsupported|unrecognized|unknown|not (?:supported|permitted|allowed)|deprecated|\buse\b|"
    r"instead|did you mean",
    re.IGNORECASE,
)
_SIZE = re.compile(
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
_NUMBER = re.compile(r"(?<![\w.-])\d+(?![\w-])")
_STATUS = (400, 413, 422)


def limits_tokens(refusal: str) -> bool:
    """Return whether a server refuses a request because of a number of tokens, so that it may take
    one for fewer.
    """
    return bool(_TOKENS.search(refusal) and _LIMIT.search(refusal))


def too_long(refusal: str) -> bool:
    """Return whether a server refuses a request because it exceeds the model's context."""
    return limits_tokens(refusal) and bool(_CONTEXT.search(refusal))


def wants_other_key(refusal: str) -> bool:
    """Return whether a server takes `max_completion_tokens` in place of `max_tokens`."""
    named = "max_completion_tokens" in refusal and not re.search("too (?:large|long)", refusal)
    return named and bool(_OTHER_KEY.search(refusal))


def tokens_left(refusal: str, asked: int, before: str = "") -> int:
    """Return the tokens to ask for instead of `asked`, fewer; 0 if the prompt alone is too long.

    Half of `asked` if the refusal does not show how many. before: the refusal of more tokens, if
    any.
    """
    refusal = re.sub(r"(?<![\[\d])(\d{1,3}),(?=\d{3}\b)", r"\1", refusal)
    if re.search(r"contains at least \d", refusal):  # vLLM stops to count
        return asked // 2
    context, prompt = _number(_SIZE, refusal), _number(_PROMPT, refusal)
    if not (context and prompt):
        return min(_from_numbers(refusal, asked, before), asked - 1)
    if prompt > context and not before:  # vLLM 0.15 subtracts `asked` from its context
        return max(0, context + asked - prompt)
    return max(0, min(context - prompt, asked - 1))


def _from_numbers(refusal: str, asked: int, before: str) -> int:
    """Return the tokens to ask for by the numbers of a refusal that names none of them."""
    found = (int(number[0]) for number in _NUMBER.finditer(refusal))
    numbers = [each for each in dict.fromkeys(found) if each > 1 and each not in (asked, *_STATUS)]
    sums = [
        context - prompt
        for prompt, context in product(numbers, numbers)
        if prompt < context < prompt + asked and prompt + asked in numbers
    ]
    if sums:  # "you requested 2140 tokens (1540 in your prompt; 600 for the completion)"
        return max(sums)
    if len(numbers) == 2:
        low, high = sorted(numbers)
        # prompt and context, or context and both together
        ways = [high - low] if high < asked else [high - low, low + asked - high]
        ways = [way for way in ways if 0 < way < asked]
        return (min if before else max)(ways, default=0)
    return max((each for each in numbers if each < asked), default=asked // 2)


def _number(pattern: re.Pattern[str], text: str) -> int | None:
    match = pattern.search(text)
    return int(next(group for group in match.groups() if group)) if match else None
