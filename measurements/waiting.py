"""Scaling of a training step with its workers when rollouts only wait.

`python -m measurements.waiting [COMPLETIONS] [SECONDS]`. Rollouts are simulated: a completion is a
sleep of SECONDS, as if it waited for a remote engine, a tool or a judge. Each worker, an actor of a
private Ray, generates its share of the step's completions one after the other. This measures the
overhead of Ray and of collecting the completions, not the scaling of computation.
"""

from __future__ import annotations

import os
import sys
import time

ROUNDS = 3


class Worker:
    def generate(self, count: int, seconds: float) -> list[dict[str, object]]:
        completions = []
        for index in range(count):
            time.sleep(seconds)
            completions.append({"index": index, "tokens": list(range(100))})
        return completions


def main(count: int, seconds: float) -> None:
    os.environ |= {
        "RAY_AUTH_MODE": "disabled",
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
        "RAY_USAGE_STATS_ENABLED": "0",
    }
    import ray

    ray.init(num_cpus=16, include_dashboard=False, logging_level="error", object_store_memory=10**8)
    print(f"{count} completions a step, {seconds} s each, medians of {ROUNDS} steps\n")
    print("| workers | s a step | speedup | efficiency |")
    print("|---|---|---|---|")
    single = 0.0
    for number in (1, 2, 4):
        workers = [ray.remote(Worker).options(num_cpus=1).remote() for _ in range(number)]
        ray.get([worker.generate.remote(1, 0.0) for worker in workers])  # wait for their start
        median = sorted(step(ray, workers, count, seconds) for _ in range(ROUNDS))[ROUNDS // 2]
        single = single or median
        speedup = single / median
        print(f"| {number} | {median:.2f} | {speedup:.2f} | {speedup / number:.0%} |", flush=True)
        for worker in workers:
            ray.kill(worker)
    ray.shutdown()


def step(ray: object, workers: list, count: int, seconds: float) -> float:  # type: ignore[type-arg]
    began, share = time.monotonic(), count // len(workers)
    completions = ray.get([worker.generate.remote(share, seconds) for worker in workers])  # type: ignore[attr-defined]
    assert sum(map(len, completions)) == count
    return time.monotonic() - began


if __name__ == "__main__":
    arguments = sys.argv[1:] + ["64", "0.1"][len(sys.argv) - 1 :]
    main(int(arguments[0]), float(arguments[1]))
