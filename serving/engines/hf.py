"""The engine for a laptop: a checkpoint in this process, with transformers, one request after
another.

fp32 on a CPU, bf16 on a GPU. Code in a checkpoint is never run, and nothing is downloaded.
"""

from __future__ import annotations

from pathlib import Path
from threading import Lock

from serving.engines import Answer, Ask, TooLong


class HfEngine:
    """folder: a Hugging Face checkpoint with tokenizer and chat template. Raises OSError or
    ValueError for any other folder.
    """

    def __init__(self, folder: Path) -> None:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        device, dtype = (
            ("cuda", torch.bfloat16) if torch.cuda.is_available() else ("cpu", torch.float32)
        )
        self.tokenizer = AutoTokenizer.from_pretrained(
            folder, trust_remote_code=False, local_files_only=True
        )
        self.model = (
            AutoModelForCausalLM.from_pretrained(
                folder, trust_remote_code=False, local_files_only=True, dtype=dtype
            )
            .to(device)
            .eval()
        )
        self.positions = int(getattr(self.model.config, "max_position_embeddings", 1 << 30))
        self.turn = Lock()  # torch's own threads use all cores already

    def answer(self, ask: Ask) -> Answer:
        import torch

        raw = isinstance(ask.chat, str)
        text = (
            ask.chat
            if raw
            else self.tokenizer.apply_chat_template(
                ask.chat, tokenize=False, add_generation_prompt=True
            )
        )
        prompt = self.tokenizer(
            text, return_tensors="pt", add_special_tokens=raw, return_token_type_ids=False
        ).to(self.model.device)
        asked = prompt["input_ids"].shape[1]
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
            out = self.model.generate(
                **prompt, max_new_tokens=min(ask.max_tokens, self.positions - asked), **settings
            )
        tokens = out[0, asked:].tolist()
        whole = self.tokenizer.decode(tokens, skip_special_tokens=True)
        cut = min((at for stop in ask.stop if (at := whole.find(stop)) >= 0), default=None)
        ended = cut is not None or (bool(tokens) and tokens[-1] in self._ends())
        return Answer(
            whole if cut is None else whole[:cut], asked, len(tokens), "stop" if ended else "length"
        )

    def _ends(self) -> set[int]:
        named = self.model.generation_config.eos_token_id
        return {
            token
            for token in [
                *(named if isinstance(named, list) else [named]),
                self.tokenizer.eos_token_id,
            ]
            if token is not None
        }


ENGINE = HfEngine
