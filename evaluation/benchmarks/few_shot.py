"""A benchmark with worked examples before each problem: each example is one turn of the user and
one of the assistant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evaluation.benchmarks.benchmark import Benchmark
from evaluation.sampling import Chat, Sampling
from problems.prompt import prompt_text
from problems.schema import Problem


@dataclass(frozen=True)
class FewShot(Benchmark):
    """A benchmark whose prompts begin with solved examples.

    `examples`: (prompt, completion) pairs, in order.
    """

    examples: tuple[tuple[str, str], ...] = ()

    def prompt(self, problem: Problem) -> Chat:
        turns = [
            {"role": role, "content": text}
            for pair in self.examples
            for role, text in zip(("user", "assistant"), pair, strict=True)
        ]
        return [*turns, *super().prompt(problem)]


def few_shot(
    name: str, problems: Sequence[Problem], examples: Sequence[Problem], sampling: Sampling
) -> FewShot:
    """Return the benchmark with these examples, each with its first solution as the completion;
    without examples, the benchmark itself.
    """
    ordered = tuple(sorted(problems, key=lambda problem: problem.problem_id))
    return FewShot(name, ordered, sampling, examples=tuple(map(chat, examples)))


def chat(example: Problem) -> tuple[str, str]:
    """Return an example's prompt and completion. Raises IndexError without a solution."""
    return prompt_text(example), example.solutions[0]


def lacking(checkpoint: Path, benchmark: Benchmark) -> int:
    """Return by how many tokens the longest prompt with its completion exceeds the model's
    positions; 0 if all fit, or the model names no limit.
    """
    from transformers import AutoConfig, AutoTokenizer

    config = AutoConfig.from_pretrained(checkpoint, trust_remote_code=False, local_files_only=True)
    positions = getattr(config, "max_position_embeddings", None)
    if positions is None:
        return 0
    tokenizer = AutoTokenizer.from_pretrained(
        checkpoint, trust_remote_code=False, local_files_only=True
    )
    chats = [benchmark.prompt(problem) for problem in benchmark.problems]
    longest = max(
        len(
            tokenizer.encode(
                tokenizer.apply_chat_template(each, tokenize=False, add_generation_prompt=True)
            )
        )
        for each in chats
    )
    return max(0, longest + benchmark.sampling.max_new_tokens - int(positions))
