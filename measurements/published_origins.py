"""Take real rows of published datasets out of public repositories, as files of JSON lines.

    python -m measurements.published_origins CHECKOUTS FOLDER
    python -m measurements.published_rows FOLDER/*.jsonl

CHECKOUTS has a clone of each repository of `ORIGINS` under its name without the owner; a repository
that is absent is skipped. What a repository does not hold of a row (often the statement) is filled
with a placeholder, and no test or solution is.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Row = dict[str, Any]
Show = Callable[[str], str]  # content of a path at the origin's revision
FENCE = re.compile(r"```json\n(.*?)\n```", re.DOTALL)
DATA = "rllm/data/{}.json"  # rLLM's files, from which DeepCoder was made


def listed(name: str) -> Callable[[Show], Iterator[Row]]:
    """A file of rLLM's: `problem`, `tests`, and `solutions` for LeetCode."""

    def rows(show: Show) -> Iterator[Row]:
        yield from json.loads(show(DATA.format(name)))

    return rows


def fenced(path: str, key: str) -> Callable[[Show], Iterator[Row]]:
    """The JSON blocks of a Markdown page that are objects with `key`."""

    def rows(show: Show) -> Iterator[Row]:
        for block in FENCE.findall(show(path)):
            value = json.loads(block, strict=False)
            if isinstance(value, dict) and key in value:
                yield value

    return rows


def eurus(show: Show) -> Iterator[Row]:
    """A row of Eurus-2-RL-Data, number 119, which is a literal of a script."""
    for node in ast.parse(show("scripts/data/generate_dup.py")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "single_instance":
            yield ast.literal_eval(node.value)


def deepcoder_taco(show: Show) -> Iterator[Row]:
    """Tests and solutions of DeepCoder's TACO part; upstream changed the third to be wrong."""
    tree = ast.parse(show("verl_tool/servers/tests/test_python_oj_tool.py"))
    nodes = [node for node in ast.walk(tree) if isinstance(node, (ast.Assign, ast.keyword))]
    programs = [
        ast.literal_eval(node.value)
        for node in nodes
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "action"
    ]
    tests = [
        ast.literal_eval(node.value)["public_tests"][0]
        for node in nodes
        if isinstance(node, ast.keyword) and node.arg == "extra_field"
    ]
    for number, (program, test) in enumerate(zip(programs, tests, strict=False)):
        yield {"problem": f"TACO {number}", "solutions": [program], "tests": test}


def synthetic_1(show: Show) -> Iterator[Row]:
    """PrimeIntellect's verifiable coding problems, the base of SYNTHETIC-1 and of open-r1's set.

    ScaleBox shows two of their rows; special_judge/preprocess.py made them, and is reverted here.
    """
    for number, row in enumerate(fenced("verl_compatibility.md", "solutions")(show)):
        truth = json.loads(row["reward_model"]["ground_truth"])
        common = {key: truth[key] for key in ("fn_name", "type")}
        cases = [
            {"input": given, "output": expected} | common
            for given, expected in zip(truth["input"], truth["output"], strict=True)
        ]
        yield {
            "problem_id": f"vcp_{number}",
            "prompt": row["prompt"][0]["content"],
            "gold_standard_solution": row["solutions"][0],
            "verification_info": repr({"language": "python", "test_cases": cases}),
        }


def acecode_v2(show: Show) -> Iterator[Row]:
    """Four problems of a trial by AceCode-V2's authors, with programs and their pass rates.

    Upstream's acecoderv2/scripts/format_old_acecoderv2_data.py turns rows into this; it is reversed
    here. `id` and `source` are filled in.
    """
    for line in show(f"{ROUNDS}/step2.2_eval_gpt_4.1_mini_seed42_round0.jsonl").strip().split("\n"):
        row = json.loads(line)
        made = row["synthesis_result"]
        yield {
            "id": f"evol_{row['id']}",
            "source": "evol",
            "question": made["problem"],
            "tests": made["tests"],
            "inferences": [
                {"completion": each["parse_code"], "pass_rate": each["pass_rate"]}
                for each in row["gen_result"]["eval_results"]
            ],
        }


ROUNDS = "advsersial_prompt/outputs/acecoder_rounds"  # as upstream spells it
OPEN_R1 = "docs/source_en/BestPractices/GRPO-Code-Training.md"
SCALEBOX = "verl_compatibility.md"
# name: repository, revision, and how its rows are read. deepscaler is a fork of
# uiuc-kang-lab, rllm one of winnieyangwannan.
ORIGINS: dict[str, tuple[str, str, Callable[[Show], Iterator[Row]]]] = {
    "acecode_v2": ("EvolveCoder", "5d4ae2e", acecode_v2),
    "deepcoder_codeforces": ("deepscaler", "b1423e83", listed("test/code/codeforces")),
    "deepcoder_contests": ("deepscaler", "b1423e83", listed("test/code/code_contests")),
    "deepcoder_lcbv5": ("rllm", "d9308bdb", listed("train/code/livecodebench")),
    "deepcoder_leetcode_test": ("deepscaler", "b1423e83", listed("test/code/leetcode")),
    "deepcoder_leetcode_train": ("deepscaler", "b1423e83", listed("train/code/leetcode")),
    "deepcoder_taco": ("verl-tool", "980962b", deepcoder_taco),
    "eurus": ("deepscaler", "6934e066", eurus),
    "scalebox": ("ScaleBox", "158e71f", fenced(SCALEBOX, "solutions")),
    "synthetic_1": ("ScaleBox", "158e71f", synthetic_1),
    "open_r1_10k": ("ms-swift", "3602360a5", fenced(OPEN_R1, "verification_info")),
}


def main() -> None:
    checkouts, folder = map(Path, sys.argv[1:])
    folder.mkdir(parents=True, exist_ok=True)
    for name, (repository, revision, read) in ORIGINS.items():
        if not (place := checkouts / repository).exists():
            print(f"{name}: no {place}")
            continue

        def show(path: str, place: Path = place, revision: str = revision) -> str:
            command = ["git", "-C", str(place), "show", f"{revision}:{path}"]
            return subprocess.run(command, capture_output=True, check=True, text=True).stdout

        rows = list(read(show))
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        print(f"{name}: {len(rows)} rows of {repository} at {revision}")


if __name__ == "__main__":
    main()
