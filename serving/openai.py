"""Requests and replies of OpenAI's chat completions and completions, as far as the gateway supports
them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PositiveInt, model_validator

from resources.registry.ledger import Entry
from serving.completion import Chat, Delta, EngineReply, EngineRequest, TokenLogprob

Text = Annotated[str, Field(max_length=1_000_000)]
StopText = Annotated[str, Field(min_length=1, max_length=200)]
INT64 = 2**63


class Strict(BaseModel):
    """A field that the gateway would ignore is refused by name, unless it is null: clients send
    fields that they do not use as null.
    """

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def without_unknown_nulls(cls, body: Any) -> Any:
        if not isinstance(body, dict):
            return body
        return {n: value for n, value in body.items() if n in cls.model_fields or value is not None}


class MessagePart(BaseModel):
    """A part of a message. Only its text is used, and no other field, such as a cache's hint."""

    type: Literal["text"] = "text"
    text: Text


class Message(BaseModel):
    """A message. An earlier answer may be sent back with all of its fields; those without a meaning
    here are left out.
    """

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: Text | list[MessagePart] | None = None
    name: str | None = None
    tool_call_id: str | None = None
    tool_calls: list[dict[str, Any]] | None = None

    def plain(self) -> dict[str, Any]:
        """Return the message with its text in one piece, without what is not set."""
        content = self.content
        if isinstance(content, list):
            content = "".join(part.text for part in content)
        role = "system" if self.role == "developer" else self.role
        rest = self.model_dump(include={"name", "tool_call_id", "tool_calls"}, exclude_none=True)
        return {"role": role, "content": content or "", **rest}


class CallCase(Strict):
    """`entry_point(*args, **kwargs)` must return `expected`."""

    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    expected: Any = None


class StdioCase(Strict):
    """The program reads `stdin` and must print `stdout`."""

    stdin: Text = ""
    stdout: Text


class Tests(Strict):
    """Tests that the answer's program must pass: calls of a function, or input and output."""

    entry_point: str | None = Field(None, pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$")
    cases: list[CallCase | StdioCase] = Field(min_length=1, max_length=100)
    candidates: int = Field(4, ge=1, le=8, description="Most completions that are tried.")
    cpu_s: float = Field(3.0, gt=0, le=10, description="CPU seconds of a test.")

    @model_validator(mode="after")
    def one_style(self) -> Tests:
        calls = sum(isinstance(case, CallCase) for case in self.cases)
        if calls not in (0, len(self.cases)):
            raise ValueError("all cases must be calls, or all must be input and output")
        if bool(calls) != bool(self.entry_point):
            raise ValueError("`entry_point` belongs to calls: set it with them, and only then")
        return self


class StreamOptions(BaseModel):
    include_usage: bool | None = None


class TextFormat(Strict):
    """The only form of an answer."""

    type: Literal["text"] = "text"


class ResponseFormat(BaseModel):
    """The form of an answer, as OpenAI names it; other ones than text are for engines that can."""

    model_config = ConfigDict(extra="allow")

    type: Literal["text", "json_object", "json_schema"] = "text"


class Neutral(Strict):
    """Fields that clients of OpenAI and vLLM send, with the values that change nothing here. Others
    are refused.
    """

    frequency_penalty: float | None = Field(None, ge=0, le=0)
    presence_penalty: float | None = Field(None, ge=0, le=0)
    repetition_penalty: float | None = Field(None, ge=1, le=1)
    length_penalty: float | None = Field(None, ge=1, le=1)
    min_p: float | None = Field(None, ge=0, le=0)
    min_tokens: int | None = Field(None, ge=0, le=0)
    top_k: int | None = Field(None, ge=-1, le=0)
    logit_bias: dict[str, float] | None = Field(None, max_length=0)
    stop_token_ids: list[int] | None = Field(None, max_length=0)
    chat_template_kwargs: dict[str, Any] | None = Field(None, max_length=0)
    store: Literal[False] | None = None
    use_beam_search: Literal[False] | None = None
    ignore_eos: Literal[False] | None = None
    include_stop_str_in_output: Literal[False] | None = None
    continue_final_message: Literal[False] | None = None
    echo: Literal[False] | None = None
    skip_special_tokens: Literal[True] | None = None
    spaces_between_special_tokens: Literal[True] | None = None
    add_generation_prompt: Literal[True] | None = None
    best_of: int | None = Field(None, ge=1, le=1)
    functions: list[Any] | None = Field(None, max_length=0)
    function_call: Literal["none"] | None = None
    modalities: list[Literal["text"]] | None = Field(None, max_length=1)
    service_tier: Literal["auto", "default"] | None = None
    # Without a meaning where nothing is stored and no caller is billed.
    metadata: Annotated[dict[str, str], Field(max_length=16)] | None = None
    prompt_cache_key: str | None = None
    safety_identifier: str | None = None
    request_id: str | None = None


class SharedFields(Neutral):
    """Fields that all requests share. Unlike OpenAI's, the default temperature is 0."""

    model: str | None = Field("champion", description="`champion`, a checkpoint, or a version.")
    max_tokens: PositiveInt | None = None
    temperature: float | None = Field(0.0, ge=0, le=2)
    top_p: float | None = Field(1.0, gt=0, le=1)
    seed: int | None = Field(None, ge=-INT64, lt=INT64)
    stop: StopText | Annotated[list[StopText], Field(max_length=16)] | None = None
    n: int | None = Field(1, ge=1, le=16)
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    user: str | None = Field(None, description="Its requests go to the same arm.")
    priority: int | None = Field(0, ge=-10, le=0, description="Below 0: after all others.")
    tests: Tests | None = None

    @model_validator(mode="after")
    def whole_with_tests(self) -> SharedFields:
        if self.tests and (self.stream or (self.n or 1) > 1):
            raise ValueError("an answer with `tests` is one and whole: leave `stream` and `n` out")
        return self

    def to_engine(
        self, prompt: Chat | str, most: int, logprobs: int | None, **more: Any
    ) -> EngineRequest:
        stop = (self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ())
        heat = 0.0 if self.temperature is None else self.temperature
        top_p = 1.0 if self.top_p is None else self.top_p
        more["whole"] = not self.stream
        return EngineRequest(
            chat=prompt,
            max_tokens=most,
            temperature=heat,
            top_p=top_p,
            seed=self.seed,
            stop=stop,
            n=self.n or 1,
            logprobs=logprobs,
            **more,
        )


class ChatRequest(SharedFields):
    """A request for a chat completion."""

    messages: list[Message] = Field(min_length=1)
    max_completion_tokens: PositiveInt | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = Field(None, ge=0, le=20)
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    response_format: ResponseFormat | None = None
    parallel_tool_calls: bool | None = None

    @model_validator(mode="after")
    def fields_fit(self) -> ChatRequest:
        if self.max_tokens and self.max_completion_tokens:
            raise ValueError("max_tokens and max_completion_tokens are both set: set only one")
        if self.top_logprobs is not None and not self.logprobs:
            raise ValueError("`top_logprobs` needs `logprobs`: true")
        return self

    def engine_request(self, default_tokens: int) -> EngineRequest:
        form = self.response_format
        needs: dict[str, Any] = {}
        if self.tools:
            needs |= {"tools": self.tools, "tool_choice": self.tool_choice}
            needs["parallel_tool_calls"] = self.parallel_tool_calls
        if form and form.type != "text":
            needs["response_format"] = form.model_dump(exclude_none=True)
        return self.to_engine(
            [message.plain() for message in self.messages],
            self.max_tokens or self.max_completion_tokens or default_tokens,
            (self.top_logprobs or 0) if self.logprobs else None,
            needs={name: value for name, value in needs.items() if value is not None},
        )


class TextRequest(SharedFields):
    """A request for the completions of texts by a base model."""

    prompt: Text | Annotated[list[Text], Field(min_length=1, max_length=64)]
    logprobs: int | None = Field(None, ge=0, le=20)

    @model_validator(mode="after")
    def one_prompt(self) -> TextRequest:
        if len(self.prompts) > 1 and (self.stream or self.tests):
            raise ValueError("several prompts are answered whole and without `tests`: send one")
        return self

    @property
    def prompts(self) -> list[str]:
        return [self.prompt] if isinstance(self.prompt, str) else self.prompt

    def engine_request(self, default_tokens: int) -> EngineRequest:
        return self.to_engine(self.prompts[0], self.max_tokens or default_tokens, self.logprobs)


class GenerateRequest(SharedFields):
    """A request for the answer to a problem, without OpenAI's form."""

    prompt: Text | None = None
    problem: Text | None = Field(None, description="The same as `prompt`.")
    raw: bool = Field(False, description="Continue the text, without the model's chat template.")
    model_version: str | int | None = Field(None, description="The same as `model`; or `latest`.")
    timeout: float | None = Field(None, gt=0, description="Seconds that the answer may take.")

    @model_validator(mode="after")
    def one_problem(self) -> GenerateRequest:
        if (self.prompt is None) == (self.problem is None):
            raise ValueError("send the text as `prompt` or as `problem`")
        if self.model_version is not None:
            name = str(self.model_version)
            self.model = "champion" if name == "latest" else name
        return self

    def engine_request(self, default_tokens: int) -> EngineRequest:
        text = self.prompt if self.prompt is not None else self.problem or ""
        chat: Chat | str = text if self.raw else [{"role": "user", "content": text}]
        return self.to_engine(chat, self.max_tokens or default_tokens, None)


def head(
    id: str, entry: Entry, weights: str, *, chat: bool, stream: bool = False
) -> dict[str, Any]:
    """Return what a reply and each of its pieces begin with; `model` names the checkpoint,
    `system_fingerprint` is the hash of its tensors; null where a server elsewhere has them.
    """
    kind = ("chat.completion.chunk" if stream else "chat.completion") if chat else "text_completion"
    return {
        "id": f"{'chatcmpl' if chat else 'cmpl'}-{id}",
        "object": kind,
        "created": int(time.time()),
        "model": entry.checkpoint,
        "system_fingerprint": weights[:12] or None,
    }


def completion(
    id: str,
    entry: Entry,
    weights: str,
    replies: Sequence[EngineReply],
    *,
    chat: bool,
    prompts: int = 1,
) -> dict[str, Any]:
    """Return the whole reply. replies: equally many to each prompt, in their order."""
    choices = []
    for index, reply in enumerate(replies):
        logprobs = _logprobs(reply.logprobs, chat) if reply.logprobs else None
        message: dict[str, Any] = {"role": "assistant", "content": reply.text}
        if reply.tool_calls:
            message["tool_calls"] = reply.tool_calls
        content = {"message": message} if chat else {"text": reply.text}
        ending = {"logprobs": logprobs, "finish_reason": reply.finish_reason}
        choices.append({"index": index, **content, **ending})
    # The completions of one prompt share its tokens.
    each = len(replies) // prompts
    prompt_tokens = sum(reply.prompt_tokens for reply in replies[::each])
    tokens = sum(reply.completion_tokens for reply in replies)
    begin = head(id, entry, weights, chat=chat)
    return {**begin, "choices": choices, "usage": usage(prompt_tokens, tokens)}


def chunk(
    id: str, entry: Entry, weights: str, delta: Delta, *, chat: bool, first: bool
) -> dict[str, Any]:
    """Return one piece of a streamed reply. first: of its completion."""
    content: dict[str, Any] = {"text": delta.text}
    if chat:
        piece: dict[str, Any] = {"role": "assistant"} if first else {}
        if delta.text or first:
            piece["content"] = delta.text
        if delta.tool_calls:
            piece["tool_calls"] = list(delta.tool_calls)
        content = {"delta": piece}
    logprobs = _logprobs(delta.logprobs, chat) if delta.logprobs else None
    choice = {
        "index": delta.index, **content, "logprobs": logprobs, "finish_reason": delta.ending
    }  # fmt: skip
    return {**head(id, entry, weights, chat=chat, stream=True), "choices": [choice]}


def usage(prompt_tokens: int, tokens: int) -> dict[str, int]:
    total = prompt_tokens + tokens
    return {
        "prompt_tokens": prompt_tokens, "completion_tokens": tokens, "total_tokens": total
    }  # fmt: skip


def _logprobs(tokens: Sequence[TokenLogprob], chat: bool) -> dict[str, Any]:
    if chat:
        return {"content": [_token(t) | {"top_logprobs": _top(t)} for t in tokens]}
    offsets = [0]
    for token in tokens:
        offsets.append(offsets[-1] + len(token.text))
    return {
        "tokens": [token.text for token in tokens],
        "token_logprobs": [token.logprob for token in tokens],
        "top_logprobs": [dict(token.top) for token in tokens],
        "text_offset": offsets[:-1],
    }


def _token(token: TokenLogprob) -> dict[str, Any]:
    text = token.text
    return {"token": text, "logprob": token.logprob, "bytes": list(text.encode())}


def _top(token: TokenLogprob) -> list[dict[str, Any]]:
    return [_token(TokenLogprob(text, logprob)) for text, logprob in token.top]


def models(champion: Entry, loaded: Sequence[Entry]) -> dict[str, Any]:
    """List `champion`, which is always the current champion, and the loaded versions by name;
    `root` is the hash of the checkpoint.
    """
    roots = {"champion": champion.checkpoint_hash, champion.checkpoint: champion.checkpoint_hash}
    roots |= {entry.checkpoint: entry.checkpoint_hash for entry in loaded}
    one = {"object": "model", "created": 0, "owned_by": "ratchet"}
    return {"object": "list", "data": [{"id": n, **one, "root": r} for n, r in roots.items()]}
