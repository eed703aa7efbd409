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
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from problems.cleaning.curation import Curated
from problems.dataset.balance import Share, Weight, shares, weigh, write_weights
from problems.dataset.charts import funnel_chart, histogram
from problems.dataset.rl_parquet import write_verl
from problems.difficulty.features import write_features
from problems.funnel import Stage, funnel
from problems.prompt import shown_test
from problems.schema import Problem, set_hash

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
MOST_TAGS = 12
# Characters with a meaning in Markdown or HTML.
SIGNS, ESCAPED = (
    re.compile(r"([\\`*_{}\[\]<>#|~$])"),
    r"\\\1",
)
# The splits that verl reads. Demonstrations are for the warm-up, which reads problems.parquet.
SPLITS = ("train", "validation")


def write_dataset(curated: Curated, stages: Sequence[Stage], folder: Path) -> None:
    """Write the files that accompany `problems.parquet`.

    These are verl's rows, features, weights, charts and the card.
    """
    problems = curated.problems
    for split in SPLITS:
        if part := [problem for problem in problems if problem.split == split]:
            write_verl(part, _created(folder / "verl" / f"{split}.parquet"))
    difficulty = write_features(problems, folder / FEATURES)
    weights = weigh(problems, difficulty)
    write_weights(weights, folder / WEIGHTS)
    by_source: dict[str, list[float]] = {}
    for problem in problems:
        by_source.setdefault(problem.source, []).append(difficulty[problem.problem_id])
    _created(folder / FUNNEL).write_text(funnel_chart(stages), encoding="utf-8")
    _created(folder / DIFFICULTY).write_text(
        histogram(by_source, "static difficulty"), encoding="utf-8"
    )
    (folder / CARD).write_text(card(curated, stages, weights), encoding="utf-8")


def _created(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def card(curated: Curated, stages: Sequence[Stage], weights: Sequence[Weight]) -> str:
    """Return the whole card. stages: what became of every problem; curation is the last one."""
    problems = curated.problems
    parts = [
        "---",
        front_matter(problems),
        "---",
        "",
        "# Programming problems with tests that decide them",
        "",
        (
            f"{len(problems):,} problems, each with a statement, reference solutions that pass in "
            "a sandbox, and tests that refuse an idle answer."
        ),
        "No problem of a benchmark that is reported is among them, nor one that was found to "
        "copy such a problem; what only resembles one is listed "
        "below as suspect. The same task in other words, with another program and other "
        "tests, is not found. Content: "
        f"`{set_hash(problems)}` (sha256 over the problems, whatever their order; that of the "
        "whole folder is in `manifest.json`).",
        "",
        _table(("source", "part", "made by", "problems"), _parts(problems)),
        *_solver(problems),
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
        _contamination(curated),
        "",
        "## Licences",
        "",
        _table(("licence", "source", "problems"), _counts((p.licence, p.source) for p in problems)),
        "",
        "## Difficulty and balance",
        "",
        f"![static difficulty by source]({DIFFICULTY})",
        "",
        BALANCE,
        "",
        balance_table(shares(problems, weights)),
        "",
        "## Examples",
        "",
        *(_example(problem) for problem in _spaced(problems)),
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


def front_matter(problems: Sequence[Problem]) -> str:
    """Return the YAML header: licences and size in the hub's terms, files per configuration.

    It is written as JSON, which is valid YAML.
    """
    licences = sorted({HUB_LICENCES.get(problem.licence.lower(), "other") for problem in problems})
    splits = [split for split in SPLITS if any(problem.split == split for problem in problems)]
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
        "size_categories": [next((name for most, name in SIZES if len(problems) < most), "n>10M")],
        "configs": configs,
    }
    return "\n".join(f"{key}: {json.dumps(value)}" for key, value in header.items())


def balance_table(rows: Sequence[Share], most: int = MOST_TAGS) -> str:
    """Return `shares` as Markdown; of the tags, those with most problems."""
    tags = sorted((row for row in rows if row[0] == "tag"), key=lambda row: (-row[2], row[1]))
    shown = [*(row for row in rows if row[0] != "tag"), *tags[:most]]
    cells = [
        (axis, group or "(none)", count, f"{100 * before:.1f} %", f"{100 * after:.1f} %")
        for axis, group, count, before, after in shown
    ]
    more = f"\n\n{len(tags) - most} more tags are not shown." if len(tags) > most else ""
    return _table(("", "group", "problems", "share before", "share after"), cells) + more


def _parts(problems: Sequence[Problem]) -> list[tuple[object, ...]]:
    return _counts(
        (problem.source, problem.split, str(problem.extra.get("made_by", "")))
        for problem in problems
    )


def _solver(problems: Sequence[Problem]) -> list[str]:
    """Return a paragraph about problems that no reference backs, if there are any."""
    shares = [problem.agreement for problem in problems if problem.agreement is not None]
    if not shares:
        return []
    return [
        "",
        f"{len(shares):,} of these problems came without a reference solution. A solver verified "
        "them: different samples of a model pass their tests and serve as solutions "
        '(`extra.verified_by` is "solver"; `extra.agreement` is the share of the samples that '
        f"pass, in the median {median(shares):.2f}). Such samples may share a mistake.",
    ]


def _contamination(curated: Curated) -> str:
    leaks = {(o.gated_id.partition("/")[0], o.problem_id) for o in curated.overlaps if o.leak}
    removed = Counter(benchmark for benchmark, _ in leaks)
    rows = [
        (name, removed[name], len({row["task"] for row in tasks}))
        for name, tasks in sorted(curated.suspects.items())
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


def _spaced(problems: Sequence[Problem], most: int = 6) -> list[Problem]:
    """Return one or two problems of each source, at most `most` in total."""
    by_source: dict[str, list[Problem]] = {}
    for problem in problems:
        if problem.split != "demonstrations":
            by_source.setdefault(problem.source, []).append(problem)
    each = max(1, most // max(1, len(by_source)))
    return [
        problem for own in by_source.values() for problem in own[:: max(1, len(own) // each)][:each]
    ][:most]


def _example(problem: Problem) -> str:
    shown = "\n".join(_cut(shown_test(problem, test), 300) for test in problem.tests[:3])
    solution = min(problem.solutions, key=len, default="")
    blocks = [
        _quoted(_cut(problem.statement, 800)),
        fenced(_cut(shown, 900), "" if problem.style == "stdio" else "python"),
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


def _counts(keys: Iterable[tuple[object, ...]]) -> list[tuple[object, ...]]:
    return [
        (*key, f"{count:,}")
        for key, count in sorted(Counter(keys).items(), key=lambda item: tuple(map(str, item[0])))
    ]


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    cells = [" | ".join(str(value).replace("|", "\\|") for value in row) for row in rows]
    return "\n".join(
        [f"| {' | '.join(head)} |", "|" + "---|" * len(head), *(f"| {row} |" for row in cells)]
    )
