"""The engine for a laptop: a checkpoint in this process, with transformers, one request after
another.

It answers with `model.generate`: requests are not batched, so no row ends before another.
A checkpoint is loaded and its prompts are encoded as in evaluation/generation/decoder.py.
"""

from __future__ import annotations

from pathlib import Path
from threading import Lock

from evaluation.generation.decoder import before_stop, encoded, ends_of, load, positions_of
from serving.engines import Answer, Ask, TooLong


class HfEngine:
    """folder: a Hugging Face checkpoint with tokenizer and chat template. Raises OSError or
    ValueError for any other folder.
    """

    def __init__(self, folder: Path) -> None:
        self.model, self.tokenizer = load(folder)
        self.positions = positions_of(self.model)
        self.turn = Lock()  # torch's own threads use all cores already

    def answer(self, ask: Ask) -> Answer:
        import torch

        [ids] = encoded(self.tokenizer, [ask.chat])
        asked = len(ids)
        if asked >= self.positions:
            raise TooLong(
                f"the messages are {asked} tokens long, this model has {self.positions} "
                "positions: shorten them"
            )
        settings = (
            {"do_sample": True, "temperature": ask.temperature, "top_p": ask.top_p, "top_k": 0}
            if ask.temperature > 0
            else {"do_sample": False}
        )
        if ask.stop:
            settings |= {"stop_strings": list(ask.stop), "tokenizer": self.tokenizer}
        with self.turn, torch.inference_mode():
            torch.seed() if ask.seed is None else torch.manual_seed(ask.seed)
            prompt = torch.tensor([ids], device=self.model.device)
            out = self.model.generate(
                prompt,
                attention_mask=torch.ones_like(prompt),
                max_new_tokens=min(ask.max_tokens, self.positions - asked),
                **settings,
            )
        tokens = out[0, asked:].tolist()
        whole = self.tokenizer.decode(tokens, skip_special_tokens=True)
        text = before_stop(whole, ask.stop)
        ended = text != whole or (
            bool(tokens) and tokens[-1] in ends_of(self.model, self.tokenizer)
        )
        return Answer(text, asked, len(tokens), "stop" if ended else "length")


ENGINE = HfEngine
