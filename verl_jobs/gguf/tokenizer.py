"""The tokenizer of a GGUF file: byte-level BPE with the file's special tokens and chat template.

In: a `Header`. Out: a fast tokenizer. transformers' loader of GGUF files is not used: it names the
begin token as end token, ignores the file's pre-tokenizer and replaces a character when decoding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from verl_jobs.gguf.header import Header
from verl_jobs.sft.start import UnfitStart

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

# tokenizer.ggml.pre -> whether each digit is a word of its own; then GPT-2's words
PRE_TOKENIZERS = {"gpt-2": False, "smollm": True}
CONTROL, USER_DEFINED = 3, 4  # tokenizer.ggml.token_type
MARK = "ratchet"


def check_tokenizer(header: Header) -> None:
    """Raise UnfitStart for a tokenizer of another kind."""
    known = {"tokenizer.ggml.model": ("gpt2",), "tokenizer.ggml.pre": tuple(PRE_TOKENIZERS)}
    for key, values in known.items():
        if (value := header.metadata.get(key)) not in values:
            raise UnfitStart(
                f"{header.path}: {key} is {value!r}, known: {', '.join(values)}: convert it to a "
                "Hugging Face folder with another tool"
            )


def make_tokenizer(header: Header) -> PreTrainedTokenizerFast:
    """Return the file's tokenizer.

    Its end token ends an assistant's turn in the chat template, whatever the file names. Its
    padding is not the end token, which would then be masked in training. A chat begins with at most
    one begin token. Raises UnfitStart.
    """
    from transformers import PreTrainedTokenizerFast

    check_tokenizer(header)
    of = {
        key.removeprefix("tokenizer.ggml."): value
        for key, value in header.metadata.items()
        if key.startswith("tokenizer.ggml.")
    }
    tokens: list[str] = of["tokens"]
    control = [i for i, kind in enumerate(of.get("token_type", ())) if kind == CONTROL]
    bos, eos = of.get("bos_token_id"), of.get("eos_token_id")
    adds_bos = bos if of.get("add_bos_token") else None
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=_bpe(of, tokens, control, adds_bos),
        model_max_length=header.need("context_length"),
        clean_up_tokenization_spaces=False,
    )
    if bos is not None:
        tokenizer.bos_token = tokens[bos]
    if template := header.metadata.get("tokenizer.chat_template"):
        tokenizer.chat_template = template
        eos = _end_of_turn(header, tokenizer, control, eos)
        _one_bos(header, tokenizer, bos, adds_bos)
    if eos is None:
        raise UnfitStart(f"{header.path}: no tokenizer.ggml.eos_token_id: convert it again")
    named = (of.get("padding_token_id"), of.get("unknown_token_id"), *control)
    pad = next((i for i in named if i is not None and i not in (bos, eos)), eos)
    tokenizer.eos_token, tokenizer.pad_token = tokens[eos], tokens[pad]
    return tokenizer


def _bpe(of: dict[str, Any], tokens: list[str], control: list[int], adds_bos: int | None) -> Any:
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors

    merges = [tuple(pair.split(" ", 1)) for pair in of["merges"]]
    bpe = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, merges))
    words = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.pre_tokenizer = (
        pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), words])
        if PRE_TOKENIZERS[of["pre"]]
        else words
    )
    bpe.decoder = decoders.ByteLevel()
    if adds_bos is not None:
        bpe.post_processor = processors.TemplateProcessing(
            single=f"{tokens[adds_bos]} $A", special_tokens=[(tokens[adds_bos], adds_bos)]
        )
    bpe.add_special_tokens([AddedToken(tokens[i], normalized=False) for i in control])
    defined = [i for i, kind in enumerate(of.get("token_type", ())) if kind == USER_DEFINED]
    bpe.add_tokens([AddedToken(tokens[i], normalized=False) for i in defined])
    return bpe


def _rendered(header: Header, tokenizer: Any, chat: list[dict[str, str]]) -> str:
    try:
        return str(tokenizer.apply_chat_template(chat, tokenize=False))
    except Exception as error:  # a template may raise anything
        raise UnfitStart(
            f"{header.path}: tokenizer.chat_template refuses a chat ({error}): convert it again"
        ) from None


def _end_of_turn(header: Header, tokenizer: Any, control: list[int], eos: int | None) -> int | None:
    """Return the control token after the content of an assistant's turn; `eos` if there is none."""
    chat = [{"role": "user", "content": "?"}, {"role": "assistant", "content": MARK}]
    after = _rendered(header, tokenizer, chat).rpartition(MARK)[2]
    first = tokenizer.encode(after, add_special_tokens=False)[:1]
    return first[0] if first and first[0] in control else eos


def _one_bos(header: Header, tokenizer: Any, bos: int | None, adds_bos: int | None) -> None:
    """Put a begin token into the template if the file wants one and the template has none."""
    text = _rendered(header, tokenizer, [{"role": "user", "content": "?"}])
    first, second = [*tokenizer.encode(text, add_special_tokens=False), None, None][:2]
    if bos is not None and first == second == bos:
        raise UnfitStart(
            f"{header.path}: tokenizer.chat_template begins with two begin tokens: convert it again"
        )
    if adds_bos is not None and first != bos:
        tokenizer.chat_template = "{{ bos_token }}" + tokenizer.chat_template
