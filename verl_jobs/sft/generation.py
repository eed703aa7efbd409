"""Generation settings that transformers also saves.

It loads a generation_config.json with settings that contradict each other, such as a temperature
without sampling, and refuses to save it with the weights after a training.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

TOKENS = ("bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id")


def savable(config: Any) -> Any:
    """Return the GenerationConfig itself, or one of its token ids alone if it cannot be saved."""
    from transformers import GenerationConfig

    try:
        config.validate(strict=True)
    except ValueError:
        return GenerationConfig(**{name: getattr(config, name) for name in TOKENS})
    return config


def make_savable(folder: Path) -> None:
    """Replace a checkpoint's generation_config.json if it cannot be saved."""
    from transformers import GenerationConfig

    if (folder / "generation_config.json").is_file():
        config = GenerationConfig.from_pretrained(folder, local_files_only=True)
        if (mended := savable(config)) is not config:
            mended.save_pretrained(folder)
