"""The folder of a dataset as `datasets`, the hub and a browser read it."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pyarrow.parquet as pq
import pytest
import yaml

from artifacts.folder import Folder
from artifacts.hashing import hash_folder
from problems.cleaning.curation import curate
from problems.dataset import dataset_files, shards
from problems.dataset.card import CARD, fenced
from problems.dataset.charts import funnel_chart, histogram
from problems.dataset.dataset_files import write_dataset
from problems.dataset.evidence import evidence_of
from problems.dataset.rl_parquet import problem_from_ground_truth
from problems.embedded.compositional import generate
from problems.embedded.heldout import heldout_tasks
from problems.embedded.settings import FamilyConfig
from problems.funnel import Removed, Stage
from problems.schema import Problem, write_parquet

FAMILY = FamilyConfig(demonstrations=12, train=12, validation=4)


def written(problems: list[Problem], folder: Path) -> Path:
    """Write the folder as the asset clean_problems does."""
    folder.mkdir()
    gated = [
        replace(problem, problem_id=f"toybench/{i}", source="toybench", gated=True)
        for i, problem in enumerate(heldout_tasks(FAMILY, 0, 3))
    ]
    curated = curate([*problems, *gated], gated)
    write_parquet(gated, folder / "gated.parquet")
    write_dataset(curated, [replace(curated.stage, name="clean")], folder)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(generate(FAMILY), tmp_path_factory.mktemp("card") / "set")


def test_shards_of_any_size_give_the_same_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards, "ROW_GROUP", 3)
    monkeypatch.setattr(dataset_files, "ROW_GROUP", 3)
    curated = curate(generate(FAMILY), [])
    write_dataset(curated, [curated.stage], tmp_path / "one")
    scratch = Folder(str(tmp_path / "scratch"))
    ordered = sorted(curated.problems, key=lambda problem: problem.problem_id)
    names = [
        shards.write_shard(ordered[at : at + 5], scratch, f"shard-{at:05}")
        for at in range(0, len(ordered), 5)
    ]
    evidence = evidence_of(curated)
    dataset_files.write_files(
        shards.Shards(scratch, names), [], evidence, [curated.stage], tmp_path / "many"
    )
    assert hash_folder(tmp_path / "many") == hash_folder(tmp_path / "one")
    assert [
        pq.read_metadata(tmp_path / "many" / "problems.parquet").row_group(at).num_rows
        for at in range(3)
    ] == [3, 3, 3]


def front(folder: Path) -> Mapping[str, Any]:
    front_matter: Mapping[str, Any] = yaml.safe_load(
        (folder / CARD).read_text(encoding="utf-8").split("---\n")[1]
    )
    return front_matter


def test_the_dataset_folder_does_not_depend_on_problem_order(folder: Path, tmp_path: Path) -> None:
    shuffled = generate(FAMILY)
    random.Random(5).shuffle(shuffled)
    assert hash_folder(written(shuffled, tmp_path / "again")) == hash_folder(folder)


def test_load_dataset_reads_the_folder_without_gated_problems(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from datasets import get_dataset_config_names, load_dataset

    monkeypatch.setenv("HF_DATASETS_OFFLINE", "1")
    rows = load_dataset(str(folder), cache_dir=str(tmp_path / "cache"))
    assert {split: len(part) for split, part in rows.items()} == {"train": 12, "validation": 4}
    assert {"data_source", "prompt", "ability", "reward_model", "extra_info"} <= set(
        rows["train"].column_names
    )
    assert (
        problem_from_ground_truth(rows["train"][0]["reward_model"]["ground_truth"]).split == "train"
    )
    seen = set()
    for name in get_dataset_config_names(str(folder)):
        for part in load_dataset(str(folder), name, cache_dir=str(tmp_path / "cache")).values():
            seen |= {row.get("problem_id") or row["extra_info"]["problem_id"] for row in part}
    assert len(seen) == 28
    assert not any(problem_id.startswith("toybench/") for problem_id in seen)


def test_the_card_has_counts_licences_and_charts(folder: Path) -> None:
    text = (folder / CARD).read_text(encoding="utf-8")
    assert front(folder)["license"] == ["apache-2.0"]
    assert "| embedded | train |" in text
    assert "| | | | 3 | gated |" in text
    assert "toybench" not in text.partition("## What became")[2].partition("##")[0]
    assert str(folder) not in text
    pictures = [
        line.partition("](")[2].rstrip(")") for line in text.splitlines() if line.startswith("![")
    ]
    assert len(pictures) == 2
    assert all(ElementTree.parse(folder / picture) is not None for picture in pictures)


def test_an_empty_split_is_omitted(tmp_path: Path) -> None:
    only = [problem for problem in generate(FAMILY) if problem.split == "train"]
    [verl] = [
        config
        for config in front(written(only, tmp_path / "set"))["configs"]
        if config.get("default")
    ]
    assert [part["split"] for part in verl["data_files"]] == ["train"]
    assert not (tmp_path / "set" / "verl" / "validation.parquet").exists()


def test_a_statement_cannot_break_the_card(tmp_path: Path) -> None:
    statement = "Return ``` the <script>alert(1)</script> of | x |\n# Not a heading"
    [first, *rest] = [problem for problem in generate(FAMILY) if problem.split == "train"]
    text = (
        written(
            [replace(first, problem_id="embedded/train/0", statement=statement), *rest],
            tmp_path / "set",
        )
        / CARD
    ).read_text(encoding="utf-8")
    assert "<script>" not in text
    assert "> \\# Not a heading" in text
    assert fenced("a\n```\nb", "python").startswith("````python\n")


def test_charts_are_valid_xml() -> None:
    removed = tuple(Removed(f"a/{i}", f"reason <{i % 9}> & more") for i in range(90))
    for svg in (
        funnel_chart(
            [Stage("read", 100, 100), Stage("verified", 100, 10, removed), Stage("clean", 40, 40)]
        ),
        funnel_chart([Stage("read", 0, 0)]),
        histogram({f"source {i}": [i / 9, 1.0] for i in range(10)}, "x"),
        histogram({}, "x"),
    ):
        ElementTree.fromstring(svg)
    assert "3 other reasons" in funnel_chart([Stage("verified", 100, 10, removed)])
    assert "+ augmented" in funnel_chart(
        [
            Stage("verified", 10, 10),
            Stage("augmented", 50, 30, removed[:20], beside=True),
            Stage("clean", 40, 40),
        ]
    )


@pytest.mark.slow
def test_the_dataset_class_of_verl_reads_the_folder(folder: Path, tmp_path: Path) -> None:
    from omegaconf import OmegaConf
    from verl.utils.dataset.rl_dataset import RLHFDataset

    from verl_jobs.sft.tiny_model import train_tokenizer

    config = OmegaConf.create(
        {
            "cache_dir": str(tmp_path),
            "max_prompt_length": 1024,
            "filter_overlong_prompts_workers": 1,
        }
    )
    rows = RLHFDataset(
        [str(folder / "verl" / "train.parquet")],
        train_tokenizer(["solve the numbers", "def solve(x):"] * 8, 300),
        config,
    )
    assert len(rows) == 12
    assert (
        problem_from_ground_truth(rows[0]["reward_model"]["ground_truth"]).problem_id
        == rows[0]["extra_info"]["problem_id"]
    )
