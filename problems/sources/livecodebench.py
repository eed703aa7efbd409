"""LiveCodeBench, code generation (the hub says CC). Gated, all releases: for evaluation only."""

from __future__ import annotations

from problems.reading.livecodebench import convert
from problems.reading.source import Source, has

LIVECODEBENCH = Source(
    "livecodebench",
    "LiveCodeBench, code generation, gated",
    convert,
    "livecodebench/code_generation_lite",
    files=("test.jsonl", *(f"test{n}.jsonl" for n in range(2, 10))),
    all_files=True,
    hub_files=(("test", "test*.jsonl"),),
    fits=lambda row: has(row, "question_content", "private_test_cases"),
)
