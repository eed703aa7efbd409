"""Rollouts of verifiers: `traces.jsonl` of `eval` since 0.2; before that, `results.jsonl` of
`vf-eval` with its `metadata.json`.

`reward` is the weighted sum; each reward and metric has its own name too. A rollout that ended with
an error has no score. Rollouts of one example are its completions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from artifacts.hashing import hash_data
from evaluation.logs.log import Log, LogError, LogFormat, LoggedCompletion, number, object_of, only

RERUN = "run the evaluation again with `--resume`"


def recognizes(content: Any) -> bool:
    first = content[0] if isinstance(content, list) and content else None
    return isinstance(first, dict) and (_is_episode(first) or _is_rollout(first))


def read(content: Any, path: Path) -> Log:
    return (_episodes if _is_episode(content[0]) else _rollouts)(content, path)


def _is_episode(row: Mapping[str, Any]) -> bool:
    return {"env", "task", "traces"} <= row.keys()


def _is_rollout(row: Mapping[str, Any]) -> bool:
    return {"example_id", "completion", "reward"} <= row.keys()


def _episodes(content: Sequence[Mapping[str, Any]], path: Path) -> Log:
    if twice := [each for each, n in Counter(row["id"] for row in content).items() if n > 1]:
        raise LogError(f"{path}: episode {twice[0]} is there twice: remove the copy")
    if more := next((row for row in content if len(row["traces"]) > 1), None):
        raise LogError(
            f"{path}: episode {more['id']} has {len(more['traces'])} traces: only environments "
            "with one agent are read"
        )
    traces = [trace for row in content for trace in row["traces"]]
    if not traces:
        raise LogError(f"{path}: no episode has a trace: {RERUN}")
    return Log(
        benchmark=only(path, "environment", {row["env"]["id"] or "verifiers" for row in content}),
        version="",
        model=only(path, "model", {str(each["agent"]["config"]["model"]) for each in traces}),
        completions=[_episode(row) for row in content],
        hashes={_key(row): row["task"]["hash"] for row in content if row["task"].get("hash")},
        default="reward",
        tool_version=_versions(each["verifiers"]["version"] for each in traces),
        prompts={
            _key(row): hash_data(_first_messages(row["traces"][0]["nodes"]))
            for row in content
            if row["traces"] and row["traces"][0].get("nodes")
        },
    )


def _key(row: Mapping[str, Any]) -> str:
    task = row["task"]
    return str(task.get("key") or task.get("hash") or hash_data(task["data"]))


def _episode(row: Mapping[str, Any]) -> LoggedCompletion:
    trace = row["traces"][0] if row["traces"] else {}
    rewards = {name: each for name, each in (trace.get("rewards") or {}).items() if each}
    scores = {name: number(value) for name, value in (trace.get("metrics") or {}).items()}
    scores |= {name: number(each["score"]) for name, each in rewards.items()}
    if rewards:
        total = sum(each["score"] * each.get("weight", 1.0) for each in rewards.values())
        scores["reward"] = number(total)
    errors = [*(trace.get("errors") or ()), *(row.get("errors") or ())]
    error = f"{errors[-1]['type']}: {errors[-1]['message']}" if errors else "not completed"
    return LoggedCompletion(_key(row), scores, "" if row["ok"] else error)


def _first_messages(nodes: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Return the messages before the first one of the model."""
    sampled = next((at for at, each in enumerate(nodes) if each.get("sampled")), len(nodes))
    return [each["message"] for each in nodes[:sampled]]


def _rollouts(content: Sequence[Mapping[str, Any]], path: Path) -> Log:
    about = object_of(meta) if (meta := path.with_name("metadata.json")).exists() else {}
    versions = about.get("version_info") or {}
    rollouts = Counter(str(row["example_id"]) for row in content)
    expected, drawn = about.get("num_examples"), about.get("rollouts_per_example")
    task, most = rollouts.most_common(1)[0]
    if drawn and most > drawn:
        raise LogError(
            f"{path}: example {task} has {most} rollouts, and its metadata.json says {drawn}: "
            "remove those of an earlier run"
        )
    if expected and expected > len(rollouts):
        raise LogError(f"{path}: {len(rollouts)} of {expected} examples are in the file: {RERUN}")
    return Log(
        benchmark=about.get("env_id") or path.resolve().parent.name,
        version=versions.get("env_version") or "",
        model=about.get("model") or path.resolve().parent.name,
        completions=[_rollout(row) for row in content],
        # The last message is the task; a system prompt before it may differ.
        hashes={str(row["example_id"]): hash_data(row["prompt"][-1]) for row in _prompted(content)},
        default="reward",
        tool_version=versions.get("vf_version") or "",
        prompts={str(row["example_id"]): hash_data(row["prompt"]) for row in _prompted(content)},
    )


def _prompted(content: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [row for row in content if row.get("prompt")]


def _rollout(row: Mapping[str, Any]) -> LoggedCompletion:
    scores = {name: number(value) for name, value in (row.get("metrics") or {}).items()}
    scores["reward"] = number(row["reward"])
    error = row.get("error") or ""
    if isinstance(error, Mapping):
        error = error["error_chain_repr"]
    return LoggedCompletion(str(row["example_id"]), scores, str(error))


def _versions(versions: Any) -> str:
    return " and ".join(sorted({*versions}))


FORMAT = LogFormat("verifiers", ("results.jsonl", "traces.jsonl"), recognizes, read, RERUN)
