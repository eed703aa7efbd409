"""False alarms of the guardrail `refusals`: `python -m measurements.refusals`.

Real answers that are no refusals: CodeT's samples of CodeGen on HumanEval, the canonical solutions
of HumanEval and MBPP, and the statements of MBPP as answers in prose. Each is looked at as if code
had been asked for, and as if not.
"""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Sequence

from measurements.programs import DATA
from serving.gateway.declined import asks_for_code, declined

SAMPLES = "codet_samples/HumanEval_codegen16B_temp0.8_topp0.95_num100_max300_code_solution.jsonl.gz"


def answers() -> dict[str, list[str]]:
    """Return the sets of answers by name."""
    with gzip.open(DATA / SAMPLES, "rt", encoding="utf-8") as file:
        samples = [sample for line in file for sample in json.loads(line)["samples"]]
    with gzip.open(DATA / "humaneval/HumanEval.jsonl.gz", "rt", encoding="utf-8") as file:
        humaneval = [json.loads(line) for line in file]
    lines = (DATA / "mbpp/mbpp.jsonl").read_text(encoding="utf-8").splitlines()
    mbpp = [json.loads(line) for line in lines]
    comments = [text for text in samples if text.strip() and not _beside_comments(text)]
    return {
        "CodeT's samples": [text for text in samples if _beside_comments(text)],
        "CodeT's samples of comments alone": comments,
        "HumanEval, canonical solutions": [row["canonical_solution"] for row in humaneval],
        "MBPP, canonical solutions": [row["code"] for row in mbpp],
    } | {"MBPP, statements as prose": [row["text"] for row in mbpp]}


def _beside_comments(text: str) -> bool:
    """Return whether a text has a line that is no comment."""
    return any(line.strip() and not line.strip().startswith("#") for line in text.splitlines())


def row(name: str, texts: Sequence[str]) -> str:
    began = time.perf_counter()
    alarms = [text for text in texts if declined(text, code_was_asked=True)]
    seconds = time.perf_counter() - began
    prose = sum(declined(text, code_was_asked=False) for text in texts)
    cost = f"{1e6 * seconds / len(texts):.0f}"
    return f"| {name} | {len(texts)} | {len(alarms)} | {prose} | {cost} |"


def main() -> None:
    print("| answers | number | refusals, code asked for | refusals, else | µs each |")
    print("|---|---|---|---|---|")
    for name, texts in answers().items():
        print(row(name, texts))
    prompts = [each["prompt"] for each in _humaneval()]
    asked = sum(map(asks_for_code, prompts))
    print(f"\nHumanEval's prompts that ask for code: {asked} of {len(prompts)}")


def _humaneval() -> list[dict[str, str]]:
    with gzip.open(DATA / "humaneval/HumanEval.jsonl.gz", "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


if __name__ == "__main__":
    main()
