"""The engine for a laptop: a checkpoint in this process, with transformers, one request after
another.

It uses `model.generate`: requests are not batched, so no row ends before another.
A checkpoint is loaded and its prompts are encoded as in evaluation/generation/decoder.py.
"""

from __future__ import annotations

from pathlib import Path
from threading import Lock

from evaluation.generation.decoder import before_stop, encoded, ends_of, load, positions_of
from serving.engines import EngineReply, EngineRequest, TooLong


class HfEngine:
    """folder: a Hugging Face checkpoint with tokenizer and chat template. Raises OSError or
    ValueError for any other folder.
    """

    def __init__(self, folder: Path) -> None:
        self.model, self.tokenizer = load(folder)
        self.positions = positions_of(self.model)
        self.turn = Lock()  # torch's own threads use all cores already

    def complete(self, request: EngineRequest) -> EngineReply:
        import torch

        [ids] = encoded(self.tokenizer, [request.chat])
        prompt_tokens = len(ids)
        if prompt_tokens >= self.positions:
            raise TooLong(
                f"the messages are {prompt_tokens} tokens long, this model has {self.positions} "
                "positions: shorten them"
            )
        settings = (
            {
                "do_sample": True,
                "temperature": request.temperature,
                "top_p": request.top_p,
                "top_k": 0,
            }
            if request.temperature > 0
            else {"do_sample": False}
        )
        if request.stop:
            settings |= {"stop_strings": list(request.stop), "tokenizer": self.tokenizer}
        with self.turn, torch.inference_mode():
            torch.seed() if request.seed is None else torch.manual_seed(request.seed)
            prompt = torch.tensor([ids], device=self.model.device)
            out = self.model.generate(
                prompt,
                attention_mask=torch.ones_like(prompt),
                max_new_tokens=min(request.max_tokens, self.positions - prompt_tokens),
                **settings,
            )
        tokens = out[0, prompt_tokens:].tolist()
        whole = self.tokenizer.decode(tokens, skip_special_tokens=True)
        text = before_stop(whole, request.stop)
        ended = text != whole or (
            bool(tokens) and tokens[-1] in ends_of(self.model, self.tokenizer)
        )
        return EngineReply(text, prompt_tokens, len(tokens), "stop" if ended else "length")


ENGINE = HfEngine
