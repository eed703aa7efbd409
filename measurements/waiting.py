"""How a training step scales with workers where its work is made of waiting: `python -m
measurements.waiting [ANSWERS] [SECONDS]`.

Rollouts are simulated: an answer is a sleep of so many seconds (an engine elsewhere, a tool, a
judge), a worker takes its share of the step's answers one after the other, as an actor of a private
Ray. What is measured is what Ray and the gathering of the answers add; nothing that computes scales
here, and two cores could not show it.
"""

from __future__ import annotations

import os
import sys
import time

ROUNDS = 3


class Worker:
    def answers(self, count: int, seconds: float) -> list[dict[str, object]]:
        made = []
        for index in range(count):
            time.sleep(seconds)
            made.append({"index": index, "tokens": list(range(100))})
        return made


def main(count: int, seconds: float) -> None:
    os.environ |= {
        "RAY_AUTH_MODE": "disabled",
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
        "RAY_USAGE_STATS_ENABLED": "0",
    }
    import ray

    ray.init(num_cpus=16, include_dashboard=False, logging_level="error", object_store_memory=10**8)
    print(f"{count} answers a step, {seconds} s each, medians of {ROUNDS} steps\n")
    print("| workers | s a step | times as fast | efficiency |")
    print("|---|---|---|---|")
    alone = 0.0
    for number in (1, 2, 4):
        workers = [ray.remote(Worker).options(num_cpus=1).remote() for _ in range(number)]
        ray.get([worker.answers.remote(1, 0.0) for worker in workers])  # they are up
        took = sorted(step(ray, workers, count, seconds) for _ in range(ROUNDS))[ROUNDS // 2]
        alone = alone or took
        print(
            f"| {number} | {took:.2f} | {alone / took:.2f} | {alone / took / number:.0%} |",
            flush=True,
        )
        for worker in workers:
            ray.kill(worker)
    ray.shutdown()


def step(ray: object, workers: list, count: int, seconds: float) -> float:  # type: ignore[type-arg]
    began = time.monotonic()
    answers = ray.get([worker.answers.remote(count // len(workers), seconds) for worker in workers])  # type: ignore[attr-defined]
    assert sum(map(len, answers)) == count
    return time.monotonic() - began


if __name__ == "__main__":
    given = sys.argv[1:] + ["64", "0.1"][len(sys.argv) - 1 :]
    main(int(given[0]), float(given[1]))
