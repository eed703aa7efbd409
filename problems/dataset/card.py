"""Write the card of a dataset: README.md, as the Hugging Face hub shows it, with its charts.

In: what curation kept, and why the rest was removed. Out: Markdown with a YAML header that tells
`datasets.load_dataset` which files belong together. Only files that may be used for training are in
a configuration, so `gated.parquet` is not. The card has no time, path or hash of its own folder:
the same problems give the same card.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from problems.dataset.balance import Share
from problems.dataset.evidence import Evidence
from problems.dataset.shards import SPLITS
from problems.funnel import Stage, funnel
from problems.prompt import shown_test
from problems.schema import Problem

CARD, FUNNEL, DIFFICULTY = "README.md", "plots/funnel.svg", "plots/difficulty.svg"
FEATURES, WEIGHTS = "features.parquet", "weights.parquet"
HUB_LICENCES = {
    name.lower(): name.lower()
    for name in ("Apache-2.0", "MIT", "BSD-2-Clause", "BSD-3-Clause", "ISC", "CC0-1.0", "CC-BY-4.0")
}
SIZES = (
    (1_000, "n<1K"),
    (10_000, "1K<n<10K"),
    (100_000, "10K<n<100K"),
    (1_000_000, "100K<n<1M"),
    (10_000_000, "1M<n<10M"),
)
MAX_TAGS = 12
# Characters with a meaning in Markdown or HTML.
SIGNS, ESCAPED = (
    re.compile(r"([\\`*_{}\[\]<>#|~$])"),
    r"\\\1",
)


@dataclass(frozen=True)
class DatasetSummary:
    """What the card says of the problems of a dataset.

    parts: number of problems by source, split and maker. licences: by licence and source.
    agreements: shares of the samples that agree, of problems that no reference backs.
    """

    count: int
    set_hash: str
    parts: Mapping[tuple[str, str, str], int]
    licences: Mapping[tuple[str, str], int]
    examples: Sequence[Problem]
    agreements: Sequence[float] = ()

    @property
    def splits(self) -> list[str]:
        """Return those of verl's splits that have problems."""
        return [split for split in SPLITS if any(part == split for _, part, _ in self.parts)]


def card(
    summary: DatasetSummary, evidence: Evidence, stages: Sequence[Stage], rows: Sequence[Share]
) -> str:
    """Return the whole card.

    stages: what became of every problem; curation is the last one. rows: see `balance.shares`.
    """
    parts = [
        "---",
        front_matter(summary),
        "---",
        "",
        "# Programming problems with tests that decide them",
        "",
        (
            f"{summary.count:,} problems, each with a statement, reference solutions that pass in "
            "a sandbox, and tests that refuse an idle answer."
        ),
        "No problem of a benchmark that is reported is among them, nor one that was found to "
        "copy such a problem; what only resembles one is listed "
        "below as suspect. The same task in other words, with another program and other "
        "tests, is not found. Content: "
        f"`{summary.set_hash}` (sha256 over the problems, whatever their order; that of the "
        "whole folder is in `manifest.json`).",
        "",
        _table(("source", "part", "made by", "problems"), _counts(summary.parts)),
        *_solver(summary.agreements),
        "",
        "## How to read it",
        "",
        READING,
        "",
        "## What became of every problem",
        "",
        f"![funnel]({FUNNEL})",
        "",
        funnel(stages, examples=False),
        "",
        "## Likenesses to gated benchmarks",
        "",
        _contamination(evidence),
        "",
        "## Licences",
        "",
        _table(("licence", "source", "problems"), _counts(summary.licences)),
        "",
        "## Difficulty and balance",
        "",
        f"![static difficulty by source]({DIFFICULTY})",
        "",
        BALANCE,
        "",
        balance_table(rows),
        "",
        "## Examples",
        "",
        *(example(problem) for problem in summary.examples),
    ]
    return "\n".join(parts).rstrip() + "\n"


READING = f"""\
```python
from datasets import load_dataset

rows = load_dataset("<this folder>")                 # verl's columns: splits train and validation
problems = load_dataset("<this folder>", "problems") # everything that is known of each problem
```

verl reads `data.train_files=<this folder>/verl/train.parquet data.val_files=<this folder>/verl/validation.parquet`; what judges an answer is the JSON
in `reward_model.ground_truth`.

| file | what it holds |
|---|---|
| `problems.parquet` | all parts, a problem a row: statement, tests, solutions, limits, tags, licence |
| `verl/*.parquet` | `data_source`, `prompt`, `ability`, `reward_model`, `extra_info` of the training and the validation part |
| `{FEATURES}` | counts of statement and solution, and the static difficulty made of them |
| `{WEIGHTS}` | how often to draw each problem of the training part, 1 on average |
| `gated.parquet` | tasks of benchmarks, kept to compare with: for evaluation only, no configuration loads it |
| `removed.json`, `duplicates.json`, `contamination.*`, `suspects.json` | the evidence |"""  # noqa: E501
BALANCE = (
    "The static difficulty is a problem's mean place among the others by length of statement, "
    "size, branches, nesting, operations and imports of "
    "its shortest solution. The weights make rare styles, levels of it and tags of the "
    "training part more frequent, as far as the square root goes; "
    "nothing is left out for them."
)


def front_matter(summary: DatasetSummary) -> str:
    """Return the YAML header: licences and size in the hub's terms, files per configuration.

    It is written as JSON, which is valid YAML.
    """
    licences = sorted({HUB_LICENCES.get(name.lower(), "other") for name, _ in summary.licences})
    splits = summary.splits
    configs: list[dict[str, Any]] = [
        {
            "config_name": "problems",
            "data_files": [{"split": "problems", "path": "problems.parquet"}],
        },
        {"config_name": "features", "data_files": [{"split": "problems", "path": FEATURES}]},
        {"config_name": "weights", "data_files": [{"split": "train", "path": WEIGHTS}]},
    ]
    if splits:
        verl = {
            "config_name": "verl",
            "default": True,
            "data_files": [{"split": split, "path": f"verl/{split}.parquet"} for split in splits],
        }
        configs = [verl, *configs[: 3 if "train" in splits else 2]]
    header: dict[str, Any] = {
        "pretty_name": "Ratchet problems",
        "language": ["en", "code"],
        "license": licences,
        "task_categories": ["text-generation"],
        "tags": ["code", "reinforcement-learning", "verl", "unit-tests"],
        "size_categories": [next((name for most, name in SIZES if summary.count < most), "n>10M")],
        "configs": configs,
    }
    return "\n".join(f"{key}: {json.dumps(value)}" for key, value in header.items())


def balance_table(rows: Sequence[Share], most: int = MAX_TAGS) -> str:
    """Return `shares` as Markdown; of the tags, those with most problems."""
    tags = sorted((row for row in rows if row[0] == "tag"), key=lambda row: (-row[2], row[1]))
    shown = [*(row for row in rows if row[0] != "tag"), *tags[:most]]
    cells = [
        (axis, group or "(none)", count, f"{100 * before:.1f} %", f"{100 * after:.1f} %")
        for axis, group, count, before, after in shown
    ]
    more = f"\n\n{len(tags) - most} more tags are not shown." if len(tags) > most else ""
    return _table(("", "group", "problems", "share before", "share after"), cells) + more


def _solver(shares: Sequence[float]) -> list[str]:
    """Return a paragraph about problems that no reference backs, if there are any."""
    if not len(shares):
        return []
    return [
        "",
        f"{len(shares):,} of these problems came without a reference solution. A solver verified "
        "them: different samples of a model pass their tests and serve as solutions "
        '(`extra.verified_by` is "solver"; `extra.agreement` is the share of the samples that '
        f"pass, in the median {median(shares):.2f}). Such samples may share a mistake.",
    ]


def _contamination(evidence: Evidence) -> str:
    leaks = {(o.gated_id.partition("/")[0], o.problem_id) for o in evidence.overlaps if o.leak}
    removed = Counter(benchmark for benchmark, _ in leaks)
    rows = [
        (name, removed[name], len({row["task"] for row in tasks}))
        for name, tasks in sorted(evidence.suspects.items())
    ]
    if not rows:
        return "No gated benchmark was among the sources, so there was nothing to compare with."
    table = _table(
        ("benchmark", "problems removed for a likeness", "of its tasks suspect still"), rows
    )
    return (
        f"{table}\n\nBoth texts of each stand side by side in `contamination.html`; "
        "`suspects.json` names the tasks that a score may leave out."
    )


def spaced(parts: Mapping[str, int], most: int = 6) -> dict[str, range]:
    """Return which problems of each source to show: one or two, at most `most` in total.

    parts: the number of problems by source, in the order of their first ones.
    """
    each = max(1, most // max(1, len(parts)))
    shown, left = dict[str, range](), most
    for source, count in parts.items():
        shown[source] = range(0, count, max(1, count // each))[: min(each, left)]
        left -= len(shown[source])
    return shown


def example(problem: Problem) -> str:
    """Return a problem in Markdown: statement, first tests, shortest solution."""
    shown = "\n".join(_cut(shown_test(problem, test), 300) for test in problem.tests[:3])
    solution = min(problem.solutions, key=len, default="")
    blocks = [
        _quoted(_cut(problem.statement, 800)),
        fenced(_cut(shown, 900), "python" if problem.kind.has_entry_point else ""),
    ]
    return "\n\n".join(
        [f"### `{problem.problem_id}`", *blocks, fenced(_cut(solution, 900), "python"), ""]
    )


def fenced(text: str, language: str) -> str:
    """Return a Markdown code block, fenced with more backticks than any run within."""
    ticks = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{ticks}{language}\n{text}\n{ticks}"


def _quoted(text: str) -> str:
    """Quote each line, and escape what Markdown or HTML would interpret."""
    return "\n".join(f"> {SIGNS.sub(ESCAPED, line)}  " for line in text.strip().splitlines())


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _counts(counts: Mapping[Any, int]) -> list[tuple[object, ...]]:
    return [(*key, f"{count:,}") for key, count in sorted(counts.items())]


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    cells = [" | ".join(str(value).replace("|", "\\|") for value in row) for row in rows]
    return "\n".join(
        [f"| {' | '.join(head)} |", "|" + "---|" * len(head), *(f"| {row} |" for row in cells)]
    )
