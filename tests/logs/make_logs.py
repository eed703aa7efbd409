# mypy: ignore-errors
"""Write the logs of this folder with the tools' own code. They need an environment of their own:

    pip install inspect_ai lm_eval datasets matplotlib gradio_client e2b
    pip install --no-deps evalplus bigcodebench
    python make_logs.py

Every model here is a function that knows some answers; every task was made for these logs.
"""

import json
import os
import shutil
import sys
import types
from pathlib import Path
from tempfile import mkdtemp

HERE = Path(__file__).resolve().parent
RIGHT = {"small": 3, "large": 10}  # of ten tasks
TASKS = [{"question": f"What is {i} + 1?", "answer": str(i + 1)} for i in range(10)]


def inspect_logs() -> None:
    from inspect_ai import Task, eval
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import ModelOutput
    from inspect_ai.scorer import Score, includes, match, mean, scorer
    from inspect_ai.solver import solver

    @solver
    def known(broken=()):
        async def solve(state, generate):
            i, model = int(state.sample_id.removeprefix("add-")), str(state.model).split("/")[1]
            if i in broken:
                raise RuntimeError("the container has stopped")
            right = i < RIGHT[model] or i % 3 < state.epoch - 1
            state.output = ModelOutput.from_content(model, str(i + 1) if right else "unknown")
            return state

        return solve

    @scorer(metrics={"exact": [mean()], "brevity": [mean()]})
    def parts():
        async def score(state, target):
            said = state.output.completion
            return Score(value={"exact": said == target.text, "brevity": 1 / len(said)})

        return score

    samples = [
        Sample(id=f"add-{i}", input=task["question"], target=task["answer"])
        for i, task in enumerate(TASKS)
    ]

    def write(name, model, solve=None, scorers=None, fail_on_error=False, **options):
        folder = mkdtemp()
        dataset = MemoryDataset(samples, name="additions")
        task = Task(
            dataset=dataset, solver=solve or known(), scorer=scorers or match(), name="sums"
        )
        [log] = eval(
            task, model=f"mockllm/{model}", log_dir=folder, display="none",
            fail_on_error=fail_on_error, **options,
        )  # fmt: skip
        shutil.move(log.location, HERE / "inspect" / name)

    (HERE / "inspect").mkdir(exist_ok=True)
    write("small.eval", "small")
    write("large.eval", "large")
    write("first_four.json", "large", limit=4, log_format="json")
    write("one_error.eval", "large", known(broken={2}))
    write("errors.eval", "large", known(broken={1, 2}), limit=4)
    write("failed.eval", "large", known(broken={0}), limit=1, fail_on_error=True)
    write("first_four.eval", "large", limit=4)
    write("epochs.eval", "small", epochs=2, limit=4)
    write("scorers.eval", "small", scorers=[match(), includes(), parts()], limit=4)


def lm_eval_samples() -> None:
    from lm_eval import evaluator
    from lm_eval.api.model import LM
    from lm_eval.loggers import EvaluationTracker
    from lm_eval.tasks import TaskManager

    class Known(LM):
        def __init__(self, right):
            super().__init__()
            self.right = right

        def generate_until(self, requests, disable_tqdm=False):
            right, near = self.right, self.right + 2
            return [
                str(i + 1) if i < right else f"It is {i + 1}" if i < near else "unknown"
                for i in range(len(requests))
            ]

        def loglikelihood(self, requests, disable_tqdm=False):
            return [(-1.0 - ((i % 2 == 1) != (i // 2 < self.right)), True) for i in range(20)]

        def loglikelihood_rolling(self, requests, disable_tqdm=False):
            raise NotImplementedError

    folder = Path(mkdtemp())
    data = [task | {"options": ["0", task["answer"]]} for task in TASKS]
    (folder / "data.jsonl").write_text("".join(json.dumps(each) + "\n" for each in data))
    common = f"""
dataset_path: json
dataset_kwargs: {{data_files: {{test: {folder / "data.jsonl"}}}}}
test_split: test
doc_to_text: "{{{{question}}}}"
metadata: {{version: 1.0}}
"""
    (folder / "sums.yaml").write_text(f"""task: sums
{common}
output_type: generate_until
doc_to_target: "{{{{answer}}}}"
generation_kwargs: {{until: ["."]}}
filter_list:
  - {{name: strict-match, filter: [{{function: regex, regex_pattern: "^(\\\\d+)$"}}, {{function: take_first}}]}}
  - {{name: flexible-extract, filter: [{{function: regex, regex_pattern: "(\\\\d+)"}}, {{function: take_first}}]}}
metric_list: [{{metric: exact_match, aggregation: mean, higher_is_better: true}}]
""")  # noqa: E501
    (folder / "choices.yaml").write_text(f"""task: choices
{common}
output_type: multiple_choice
doc_to_choice: "{{{{options}}}}"
doc_to_target: 1
metric_list: [{{metric: acc, aggregation: mean, higher_is_better: true}}]
""")
    for model, right in RIGHT.items():
        tracker = EvaluationTracker(output_path=str(folder))
        results = evaluator.simple_evaluate(
            model=Known(right), tasks=["sums", "choices"], log_samples=True, bootstrap_iters=0,
            task_manager=TaskManager(include_path=str(folder), include_defaults=False),
            evaluation_tracker=tracker,
        )  # fmt: skip
        # As for a model named on lm_eval's command line.
        tracker.general_config_tracker.log_experiment_args(
            model_source="hf", model_args=f"pretrained=made/{model}", system_instruction=None,
            chat_template=None, fewshot_as_multiturn=False,
        )  # fmt: skip
        samples = results.pop("samples")
        tracker.save_results_aggregated(results=results, samples=samples)
        for task in samples:
            tracker.save_results_samples(task_name=task, samples=samples[task])
        shutil.copytree(folder / f"made__{model}", HERE / "lm_eval" / model, dirs_exist_ok=True)


def program(name, i, right, base):
    """Return a program for task i that passes all tests, the base tests alone, or none."""
    body = f"n + {i}" if i < right else str(i + 1) if i < base else "None"
    return f"def {name}(n):\n    return {body}\n"


def evalplus_results() -> None:
    folder = Path(mkdtemp())
    tasks = [
        {
            "task_id": f"HumanEval/{i}", "prompt": f"def add(n):\n    '''Add {i}.'''\n",
            "entry_point": "add", "canonical_solution": f"    return n + {i}\n",
            "base_input": [[1]], "plus_input": [[2], [-1]], "atol": 0, "contract": "", "test": "",
        }
        for i in range(10)
    ]  # fmt: skip
    (folder / "tasks.jsonl").write_text("".join(json.dumps(each) + "\n" for each in tasks))
    os.environ["HUMANEVAL_OVERRIDE_PATH"] = str(folder / "tasks.jsonl")
    import evalplus.data.humaneval
    from evalplus.evaluate import evaluate

    evalplus.data.humaneval.completeness_check = lambda *_: None  # it wants all 164 tasks
    (HERE / "evalplus").mkdir(exist_ok=True)
    for model, right, base in (("small", 3, 8), ("large", 9, 10)):
        rows = [
            {"task_id": f"HumanEval/{i}", "solution": program("add", i, right, base)}
            for i in range(10)
        ]
        samples = folder / f"{model}.jsonl"
        samples.write_text("".join(json.dumps(row) + "\n" for row in rows))
        evaluate("humaneval", samples=str(samples), parallel=1)
        shutil.copy(folder / f"{model}_eval_results.json", HERE / "evalplus")


def bigcodebench_results() -> None:
    folder = Path(mkdtemp())
    test = (
        "import unittest\nclass TestCases(unittest.TestCase):\n    def test_one(self):\n"
        "        self.assertEqual(task_func(1), {})\n"
    )
    tasks = [
        {
            "task_id": f"BigCodeBench/{i}", "complete_prompt": "def task_func(n):\n",
            "code_prompt": "def task_func(n):\n", "instruct_prompt": "", "entry_point": "task_func",
            # Nothing passes the tests of task 9, as where a package is missing.
            "canonical_solution": f"    return n + {i}\n", "test": test.format(i + 1 + i // 9),
        }
        for i in range(10)
    ]  # fmt: skip
    (folder / "tasks.jsonl").write_text("".join(json.dumps(each) + "\n" for each in tasks))
    os.environ["BIGCODEBENCH_OVERRIDE_PATH"] = str(folder / "tasks.jsonl")
    sys.modules["bigcodebench.generate"] = types.SimpleNamespace(run_codegen=None)  # needs vllm
    import bigcodebench.data.bigcodebench
    from bigcodebench.evaluate import evaluate

    bigcodebench.data.bigcodebench.completeness_check = lambda *_: None  # it wants all 1,140
    (HERE / "bigcodebench").mkdir(exist_ok=True)
    for model, right in RIGHT.items():
        name = f"{model}--main--bigcodebench-complete--vllm-0-1-sanitized_calibrated"
        rows = [
            {"task_id": f"BigCodeBench/{i}", "solution": program("task_func", i, right, right)}
            for i in range(10)
        ]
        samples = folder / f"{name}.jsonl"
        samples.write_text("".join(json.dumps(row) + "\n" for row in rows))
        evaluate(
            "complete", "full", samples=str(samples), execution="local", parallel=1, pass_k="1"
        )
        for path in folder.glob(f"{name}_*.json"):
            shutil.copy(path, HERE / "bigcodebench")


if __name__ == "__main__":
    for write in (inspect_logs, lm_eval_samples, evalplus_results, bigcodebench_results):
        if not sys.argv[1:] or write.__name__ in sys.argv[1:]:
            write()
