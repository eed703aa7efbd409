# mypy: ignore-errors
"""Write the logs of Harbor, verifiers, LiveCodeBench and of EvalPlus before 0.3 with their own
code, with Python 3.12 and an environment for each tool:

    pip install harbor==0.26.0; python make_rollouts.py harbor_jobs
    pip install verifiers==0.4.0; python make_rollouts.py verifiers_traces
    pip install verifiers==0.1.14; python make_rollouts.py verifiers_results
    pip install nvidia-livecodebench==26.3; python make_rollouts.py livecodebench_results
    pip install --no-deps evalplus==0.2.0 numpy psutil tqdm appdirs multipledispatch tempdir \
        termcolor wget; python make_rollouts.py older_evalplus_results

Every model here is invented; every task was made for these logs.
"""

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from uuid import UUID

HERE = Path(__file__).resolve().parent
RIGHT = {"small": 3, "large": 10}  # of ten tasks
DAY = datetime(2026, 11, 28, tzinfo=UTC)
SHA = "sha256:" + 64 * "0"


def harbor_jobs() -> None:
    """A job with ten tasks for each model; in that of `large`, task 9's environment failed."""
    from harbor.models.job.config import RetryConfig
    from harbor.models.job.lock import HarborLockInfo, JobLock, TaskLock, TrialLock, VerifierLock
    from harbor.models.job.result import JobResult, JobStats
    from harbor.models.task.id import LocalTaskId
    from harbor.models.trial.config import AgentConfig, EnvironmentConfig, TaskConfig, TrialConfig
    from harbor.models.trial.result import AgentInfo, ExceptionInfo, ModelInfo, TrialResult
    from harbor.models.verifier.result import VerifierResult

    for model, right in RIGHT.items():
        job, results, locks = HERE / "harbor" / model, [], []
        agent = AgentConfig(name="terminus-2", model_name=f"made/{model}")
        for i in range(10):
            name, broken = f"add-{i}", model == "large" and i == 9
            task = TaskConfig(path=Path(f"tasks/{name}"), source="sums")
            lock = TrialLock(
                task=TaskLock(name=name, type="local", digest=SHA, source="sums"),
                agent=agent, environment=EnvironmentConfig(), verifier=VerifierLock(),
            )  # fmt: skip
            results.append(
                TrialResult(
                    id=UUID(int=1000 * right + i), task_name=name, trial_name=f"{name}__{model}",
                    trial_uri=f"file:///jobs/{model}/{name}__{model}", source="sums",
                    task_id=LocalTaskId(path=Path(f"tasks/{name}")), task_checksum=f"{i:064x}",
                    config=TrialConfig(task=task, trial_name=f"{name}__{model}", agent=agent),
                    agent_info=AgentInfo(
                        name="terminus-2", version="2.0.0",
                        model_info=ModelInfo(name=model, provider="made"),
                    ),
                    verifier_result=None
                    if broken
                    else VerifierResult(rewards={"reward": float(i < right)}),
                    exception_info=ExceptionInfo(
                        exception_type="EnvironmentStartTimeoutError",
                        exception_message="the container did not start",
                        exception_traceback="", occurred_at=DAY,
                    )
                    if broken
                    else None,
                    started_at=DAY, finished_at=DAY,
                )
            )  # fmt: skip
            locks.append(lock)
            trial = job / f"{name}__{model}"
            trial.mkdir(parents=True, exist_ok=True)
            (trial / "result.json").write_text(results[-1].model_dump_json())
        stats = JobStats.from_trial_results(results, n_total_trials=10)
        result = JobResult(
            id=UUID(int=right), started_at=DAY, finished_at=DAY, n_total_trials=10, stats=stats
        )
        (job / "result.json").write_text(result.model_dump_json(exclude={"trial_results"}))
        lock = JobLock(
            created_at=DAY, harbor=HarborLockInfo(version="0.26.0"), n_concurrent_trials=2,
            retry=RetryConfig(), trials=locks,
        )  # fmt: skip
        (job / "lock.json").write_text(lock.model_dump_json(exclude_none=True))


def verifiers_traces() -> None:
    """Two rollouts of each task; the second of task 0 ended with an error."""
    from verifiers.v1.configs.agent import AgentConfig
    from verifiers.v1.episode import EnvInfo, Episode
    from verifiers.v1.graph import MessageNode
    from verifiers.v1.task import Task, TaskData
    from verifiers.v1.trace import AgentInfo, Error, Reward, Trace, TraceTask
    from verifiers.v1.types import AssistantMessage, UserMessage
    from verifiers.v1.utils.trace_store import write_episode

    for model, right in RIGHT.items():
        folder = HERE / "verifiers" / f"{model}-0.4"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "traces.jsonl").unlink(missing_ok=True)
        for i in range(10):
            for attempt in range(2):
                data = TaskData(idx=i, prompt=f"What is {i} + 1?")
                task = Task(data)
                broken = model == "large" and i == attempt == 0
                said = AssistantMessage(content=str(i + 1) if i < right else "unknown")
                about = TraceTask(type="Task", data=data, key=task.key, hash=task.hash)
                trace = Trace(
                    id=f"{right:016x}{2 * i + attempt:016x}", task=about,
                    agent=AgentInfo(config=AgentConfig(model=f"made/{model}")),
                    nodes=[
                        MessageNode(message=UserMessage(content=data.prompt)),
                        MessageNode(message=said, parent=0, sampled=True),
                    ],
                    rewards={"exact": None if broken else Reward(score=float(i < right))},
                    metrics={"length": 0.5}, ok=not broken, is_completed=True,
                    errors=[Error(type="RuntimeError", message="lost")] if broken else [],
                )  # fmt: skip
                episode = Episode(
                    id=trace.id, env=EnvInfo(id="sums"), task=about, traces=[trace], ok=trace.ok
                )
                write_episode(folder, episode)


def verifiers_results() -> None:
    """The rollout of task 2 of `large` ended with an error."""
    from verifiers.utils import save_utils

    for model, right in RIGHT.items():
        folder = HERE / "verifiers" / f"{model}-0.1"
        states = []
        for i in range(10):
            broken = model == "large" and i == 2
            states.append({
                "example_id": i, "answer": str(i + 1), "info": {}, "is_completed": True,
                "prompt": [{"role": "user", "content": f"What is {i} + 1?"}],
                "completion": [{"role": "assistant", "content": str(i + 1)}],
                "reward": 0.0 if broken else float(i < right), "metrics": {"exact": 1.0},
                "error": RuntimeError("lost") if broken else None,
                "timing": {"generation_ms": i, "scoring_ms": 0, "total_ms": i, "start_time": 0},
            })  # fmt: skip
        builder = save_utils.GenerateOutputsBuilder(
            env_id="sums", env_args={}, model=f"made/{model}", num_examples=10,
            client=SimpleNamespace(base_url=""), rollouts_per_example=1, state_columns=[],
            sampling_args={}, results_path=folder,
        )  # fmt: skip
        builder.add_outputs(save_utils.states_to_outputs(states))
        results = builder.build()
        folder.mkdir(parents=True, exist_ok=True)
        save_utils.save_outputs(results["outputs"], folder)
        save_utils.save_metadata(results["metadata"], folder)


def livecodebench_results() -> None:
    """Two completions of each question; the test runner failed on the second of question 0."""
    sys.modules["datasets"] = SimpleNamespace(load_dataset=None, Dataset=None)  # unused
    from livecodebench.benchmarks.code_generation import CodeGenerationProblem

    for model, right in RIGHT.items():
        folder = HERE / "livecodebench" / model
        folder.mkdir(parents=True, exist_ok=True)
        rows = []
        for i in range(10):
            problem = CodeGenerationProblem(
                question_title=f"Add {i}", question_content=f"Print the input plus {i}.",
                platform="atcoder", question_id=f"made_{i}", contest_id="made",
                contest_date="2026-11-28T00:00:00", starter_code="", difficulty="easy",
                public_test_cases="[]", private_test_cases="[]", metadata="{}",
            )  # fmt: skip
            codes = [-5 if i == 0 else -2, -3]
            rows.append(
                problem.insert_output_evaluation(
                    ["", ""], [f"print(int(input()) + {i})"] * 2, [i < right and i > 0, i < right],
                    metadata=[json.dumps({"error_code": code}) for code in codes],
                )
            )  # fmt: skip
        (folder / "Scenario.codegeneration_2_0.2_eval_all.json").write_text(json.dumps(rows))


def older_evalplus_results() -> None:
    """The results of evaluate() in 0.2.0, around its own check of each program."""
    import evalplus.evaluate as older

    problem = {
        "task_id": "", "entry_point": "add", "base_input": [[1]], "plus_input": [[2], [-1]],
        "atol": 0,
    }  # fmt: skip
    for model, right, base in (("small", 3, 8), ("large", 9, 10)):
        results = {"date": "2026-11-28 12:00", "hash": 32 * "0", "eval": {}}
        for i in range(10):
            body = f"n + {i}" if i < right else str(i + 1) if i < base else "None"
            result = older.check_correctness(
                "humaneval", 0, problem, f"def add(n):\n    return {body}\n",
                {"base": [1 + i], "plus": [2 + i, i - 1], "base_time": [1], "plus_time": [1, 1]},
            )  # fmt: skip
            pair = {each: [result[each]] for each in ("base", "plus")}
            results["eval"][f"HumanEval/{i}"] = {"nfiles": 1} | pair
        folder = HERE / "evalplus_older"
        folder.mkdir(exist_ok=True)
        (folder / f"{model}_eval_results.json").write_text(json.dumps(results))


if __name__ == "__main__":
    globals()[sys.argv[1]]()
