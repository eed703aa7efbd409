"""Jobs of Harbor (`harbor run`): a folder with `result.json`, `lock.json` and a folder for each
trial.

A trial whose reward Harbor calls invalid (`reward_valid`: the environment or the verifier failed)
has no score, and so has a planned trial without a result. Trials of one task are its completions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from artifacts.hashing import hash_data
from evaluation.logs.log import Log, LogError, LogFormat, LoggedCompletion, number, object_of, only

RERUN = "run `harbor job resume` on it"
# Parts of a trial's lock that change what the agent reads.
PROMPT = ("extra_instructions", "skills", "user_persona", "user_prompt_template", "bridge_prompt")


def recognizes(content: Any) -> bool:
    return isinstance(content, dict) and {"n_total_trials", "stats"} <= content.keys()


def read(content: Any, path: Path) -> Log:
    results = [object_of(file) for file in sorted(path.parent.glob("*/result.json"))]
    lock = object_of(file) if (file := path.with_name("lock.json")).exists() else {}
    planned = {_short(each["task"]["name"]): each for each in lock.get("trials") or ()}
    if not content.get("finished_at"):
        raise LogError(f"{path}: the job has not ended: {RERUN}")
    if not results or (len(results) < content["n_total_trials"] and not planned):
        raise LogError(
            f"{path}: {len(results)} of {content['n_total_trials']} trials are in the folder, and "
            f"no lock.json names the others: copy the whole folder, or {RERUN}"
        )
    if twice := [each for each, n in Counter(each["id"] for each in results).items() if n > 1]:
        raise LogError(f"{path}: trial {twice[0]} is there twice: remove the copy")
    agent = results[0]["agent_info"]
    harbor = (lock.get("harbor") or {}).get("version")
    measured = {_short(each["task_name"]) for each in results}
    return Log(
        benchmark=only(path, "dataset", {each.get("source") or "adhoc" for each in results}),
        version="",
        model=only(path, "model", {_model(each) for each in results}),
        completions=[_completion(each) for each in results],
        missing={name: "no trial in the job's folder" for name in planned if name not in measured},
        hashes={each["task_name"]: each["task_checksum"] for each in results},
        default="reward",
        tool_version=", ".join(
            [*([harbor] if harbor else []), f"{agent['name']} {agent['version']}"]
        ),
        prompts={
            each["task_name"]: hash_data([each["task_checksum"], _prompt(planned[name])])
            for each in results
            if (name := _short(each["task_name"])) in planned
        },
    )


def _short(task: str) -> str:
    """Return a task's name without its organisation, which a lock may leave out."""
    return task.rpartition("/")[2]


def _prompt(lock: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: lock[name] for name in PROMPT if lock.get(name)}


def _completion(trial: Mapping[str, Any]) -> LoggedCompletion:
    rewards = (trial.get("verifier_result") or {}).get("rewards") or {}
    error = "" if trial.get("reward_valid", bool(rewards)) else _error(trial)
    return LoggedCompletion(
        trial["task_name"], {name: number(value) for name, value in rewards.items()}, error
    )


def _error(trial: Mapping[str, Any]) -> str:
    steps = trial.get("step_results") or ()
    for exception in (each.get("exception_info") for each in (trial, *steps)):
        if exception:
            return f"{exception['exception_type']}: {exception['exception_message']}"
    return "no reward"


def _model(trial: Mapping[str, Any]) -> str:
    """Return agent and model: a job may compare agents."""
    agent = trial["agent_info"]
    model = (agent.get("model_info") or {}).get("name")
    return f"{agent['name']} {model}" if model else str(agent["name"])


FORMAT = LogFormat("Harbor", ("result.json",), recognizes, read, RERUN)
