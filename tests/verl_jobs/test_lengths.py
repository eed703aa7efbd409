"""Token limits from measured lengths."""

from __future__ import annotations

from pathlib import Path

import pytest

from verl_jobs import samples
from verl_jobs.planner.lengths import Lengths, limits, of_completions, of_prompts, of_run
from verl_jobs.samples import Sample
from verl_jobs.sft.tiny_model import train_tokenizer

TOKENIZER = train_tokenizer(["def solve(x):\n    return sorted(x)[::-1]"] * 4, 300)


@pytest.mark.parametrize(
    ("share", "length"), [(0.01, 1), (0.5, 50), (0.99, 99), (0.991, 100), (1.0, 100)]
)
def test_a_quantile_is_the_smallest_length_that_covers_the_share(share: float, length: int) -> None:
    assert Lengths("t", tuple(range(1, 101))).quantile(share) == length


def test_limits_cover_the_longest_kind_in_multiples_of_eight() -> None:
    short, long = Lengths("references", (10, 20, 30)), Lengths("completions", (10, 50, 70))
    assert limits(Lengths("prompts", (5, 9, 17)), [short, long], 1.0) == (24, 72)
    assert limits(Lengths("prompts", (5, 9, 17)), [short, long], 0.6) == (16, 56)


def test_a_prompt_is_counted_with_its_chat_template() -> None:
    text = "return sorted"
    whole = TOKENIZER.apply_chat_template(
        [{"role": "user", "content": text}],
        tokenize=True,
        add_generation_prompt=True,
        return_dict=False,
    )
    assert of_prompts(TOKENIZER, [text]).tokens == (len(whole),)


def test_a_completion_is_counted_with_its_end_token() -> None:
    assert of_completions("references", TOKENIZER, ["return sorted"]).tokens == (
        len(TOKENIZER.encode("return sorted")) + 1,
    )


def test_a_past_run_is_measured_over_all_its_steps(tmp_path: Path) -> None:
    assert of_run(TOKENIZER, tmp_path) is None
    for step, text in ((1, "return"), (2, "return sorted(x)")):
        samples.write(tmp_path, step, [Sample("p", text, 1.0, "AC", 1.0, {})])
    lengths = of_run(TOKENIZER, tmp_path)
    assert lengths is not None
    assert len(lengths.tokens) == 2
    assert lengths.tokens[0] < lengths.tokens[1]
