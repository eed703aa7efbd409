"""Completions of a checkpoint folder are cached as soon as they are generated.

A killed run resumes. A repeated run generates nothing. A run with other settings starts over.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from artifacts.integrity import CorruptArtifact
from evaluation.benchmarks import Benchmark, NotMeasured, heldout
from evaluation.benchmarks.registry import load_public
from evaluation.completions import Completion
from evaluation.generation.completion_cache import CompletionCache, keys
from evaluation.generation.completion_sources import (
    FolderSource,
    GenerationReport,
    folder_of,
    generate_completions,
)
from evaluation.generation.decoder import generate
from evaluation.sampling import Sampling
from problems.reading.place import Place
from problems.schema import Problem

SAMPLED = Sampling(n=2, temperature=1.0, max_new_tokens=8, seed=3)


@pytest.fixture(scope="module")
def benchmark(problems: list[Problem]) -> Benchmark:
    return heldout(problems[:8])


def without_seconds(completions: list[Completion]) -> list[Completion]:
    return [replace(each, seconds=None) for each in completions]


def test_completions_come_in_order_of_task_and_sample(
    checkpoint: Path, benchmark: Benchmark, tmp_path: Path
) -> None:
    plain = generate(
        checkpoint, [benchmark.prompt(problem) for problem in benchmark.problems], SAMPLED
    )
    completions = generate_completions(benchmark, FolderSource(checkpoint), SAMPLED, tmp_path)
    assert [each.text for each in completions] == [output.text for output in plain]
    assert [(each.task_id, each.sample) for each in completions] == [
        (p.problem_id, k) for p in benchmark.problems for k in range(2)
    ]
    assert all(
        each.whole and each.tokens == output.tokens and each.cut == output.cut
        for each, output in zip(completions, plain, strict=True)
    )


def test_a_repeated_run_reads_the_cache(
    checkpoint: Path, benchmark: Benchmark, tmp_path: Path
) -> None:
    first, again, more = GenerationReport(), GenerationReport(), GenerationReport()
    completions = generate_completions(
        benchmark, FolderSource(checkpoint), SAMPLED, tmp_path, report=first
    )
    assert (
        generate_completions(benchmark, FolderSource(checkpoint), SAMPLED, tmp_path, report=again)
        == completions
    )
    wider = generate_completions(
        benchmark,
        FolderSource(checkpoint),
        SAMPLED.model_copy(update={"n": 3}),
        tmp_path,
        report=more,
    )
    count = len(benchmark.problems)
    assert (first.requested, again.requested, more.requested) == (2 * count, 0, count)
    assert [each for each in wider if each.sample < 2] == completions


@pytest.mark.parametrize(
    "change",
    [{"seed": 4}, {"temperature": 0.5}, {"max_new_tokens": 9}, {"stop": ("x",)}, {"top_p": 0.5}],
)
def test_other_sampling_settings_do_not_use_the_cache(
    checkpoint: Path, benchmark: Benchmark, tmp_path: Path, change: dict[str, object]
) -> None:
    generate_completions(benchmark, FolderSource(checkpoint), SAMPLED, tmp_path)
    counts = GenerationReport()
    generate_completions(
        benchmark,
        FolderSource(checkpoint),
        SAMPLED.model_copy(update=change),
        tmp_path,
        report=counts,
    )
    assert counts.cached == 0
    assert counts.requested == 2 * len(benchmark.problems)


def test_other_weights_do_not_use_the_cache(
    checkpoint: Path, benchmark: Benchmark, tmp_path: Path
) -> None:
    from safetensors.torch import load_file, save_file

    other = tmp_path / "other"
    subprocess.run(["cp", "-r", str(checkpoint), str(other)], check=True)
    weights = load_file(other / "model.safetensors")
    name = next(iter(weights))
    save_file(
        weights | {name: weights[name] * 2}, other / "model.safetensors", metadata={"format": "pt"}
    )
    counts = GenerationReport()
    for folder in (checkpoint, other):
        generate_completions(
            benchmark, FolderSource(folder), SAMPLED, tmp_path / "kept", report=counts
        )
    assert counts.cached == 0


def test_greedy_completions_are_generated_once_for_any_seed(
    checkpoint: Path, benchmark: Benchmark, tmp_path: Path
) -> None:
    greedy, counts = Sampling(n=3, max_new_tokens=6, seed=1), GenerationReport()
    completions = generate_completions(
        benchmark, FolderSource(checkpoint), greedy, tmp_path, report=counts
    )
    assert counts.requested == len(benchmark.problems)
    assert all(a.text == b.text for a, b in zip(completions[::3], completions[2::3], strict=True))
    generate_completions(
        benchmark,
        FolderSource(checkpoint),
        greedy.model_copy(update={"seed": 2}),
        tmp_path,
        report=counts,
    )
    assert counts.requested == 0


def test_only_a_truncated_line_is_generated_again(
    checkpoint: Path, benchmark: Benchmark, tmp_path: Path
) -> None:
    counts = GenerationReport()
    whole = generate_completions(
        benchmark, FolderSource(checkpoint), SAMPLED, tmp_path, report=counts
    )
    lines = counts.journal.read_bytes().splitlines(keepends=True)
    counts.journal.write_bytes(b"".join(lines[:-1]) + lines[-1][:10])
    assert without_seconds(
        generate_completions(benchmark, FolderSource(checkpoint), SAMPLED, tmp_path, report=counts)
    ) == without_seconds(whole)
    assert counts.requested == 1


def test_a_base_model_gets_the_raw_prompt_and_stop_words(
    checkpoint: Path, benchmark: Benchmark, tmp_path: Path
) -> None:
    free = Sampling(max_new_tokens=24)
    long = generate_completions(benchmark, FolderSource(checkpoint, form="base"), free, tmp_path)
    word = next(each.text for each in long if len(each.text) > 8)[4:6]
    stopped = generate_completions(
        replace(benchmark, stop=(word,)), FolderSource(checkpoint, form="base"), free, tmp_path
    )
    raw = generate(
        checkpoint,
        [benchmark.raw_prompt(problem) for problem in benchmark.problems],
        free.model_copy(update={"stop": benchmark.stop}),
    )
    assert [each.text for each in long] == [output.text for output in raw]
    assert not any(each.whole for each in long)
    assert any(word in each.text for each in long)
    assert not any(word in each.text for each in stopped)
    for a, b in zip(long, stopped, strict=True):
        assert b.text == a.text.partition(word)[0]
        assert (b.tokens or 0) <= (a.tokens or 0)
        assert not (b.cut and word in a.text)


def test_a_chat_template_decides_the_prompt_format(checkpoint: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    subprocess.run(["cp", "-r", str(checkpoint), str(bare)], check=True)
    for file in bare.glob("chat_template*"):
        file.unlink()
    config = json.loads((bare / "tokenizer_config.json").read_text(encoding="utf-8"))
    config.pop("chat_template", None)
    (bare / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    assert FolderSource(checkpoint).chats
    assert not FolderSource(bare).chats


@pytest.mark.slow
def test_mbpp_uses_the_published_base_prompt(tmp_path: Path) -> None:
    from tests.evaluation.test_evaluate import data

    mbpp = load_public("mbpp", Place(data("mbpp") / "mbpp.jsonl"), tmp_path)
    assert not isinstance(mbpp, NotMeasured)
    first = next(problem for problem in mbpp.problems if problem.extra["task_id"] == 11)
    text = mbpp.raw_prompt(first)
    assert [
        text.count(word)
        for word in ("You are an expert Python programmer", "[BEGIN]\n", "[DONE]\n")
    ] == [4, 4, 3]
    assert text.startswith(
        "You are an expert Python programmer, and here is your task: "
        "Write a function to find the similar elements"
    )
    assert text.endswith('assert remove_Occ("PHP","P") == "H"\n[BEGIN]\n')
    assert mbpp.stop == ("[DONE]",)
    assert mbpp.task_id(first) == "Mbpp/11"


def test_an_unknown_folder_or_hub_id_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no config"):
        FolderSource(tmp_path)
    with pytest.raises(FileNotFoundError, match="no/such/model"):
        folder_of("no/such/model/anywhere")


def test_an_invalid_cache_line_is_refused(tmp_path: Path) -> None:
    with CompletionCache(tmp_path, {"folder": "x"}, SAMPLED) as cache:
        path = cache.path
    with path.open("a", encoding="utf-8") as file:
        file.write('{"prompt": "a"}\n')
    with (
        pytest.raises(CorruptArtifact, match="line 2"),
        CompletionCache(tmp_path, {"folder": "x"}, SAMPLED),
    ):
        pass


def test_equal_prompts_get_distinct_sample_numbers_unless_greedy() -> None:
    assert [key.number for key in keys(["a", "b", "a"], SAMPLED)] == [0, 1, 0, 1, 2, 3]
    assert len(set(keys(["a", "b", "a"], Sampling(n=2)))) == 2
