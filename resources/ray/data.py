"""Process the parts of a set on a Ray cluster, with `map_batches` of Ray Data.

A batch is one part, and there is one actor per CPU. In: work and parts as in
`problems.parallel.ParallelMap`. Out: results as they come. If an actor or a node dies, no part is
lost: Ray Data repeats it elsewhere. This code must be importable on the nodes, as in the image, and
all nodes must see the parts' files.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from resources.home import NotReady

T = TypeVar("T")
R = TypeVar("R")


class RayData:
    """Processes parts on a Ray cluster.

    address: of a Ray to join from one of its nodes (`host:port`, or `auto`). `nodes`: where parts
    were processed so far.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self.nodes: set[str] = set()

    def __call__(self, work: Callable[[T], R], parts: Sequence[T]) -> Iterator[R]:
        """Yield the results. Raises NotReady where there is no Ray at the address."""
        import ray
        import ray.data

        if not parts:
            return
        # No telemetry, and none of its threads in this process.
        os.environ.setdefault("RAY_DATA_USAGE_DISABLED", "1")
        if not ray.is_initialized():
            try:
                ray.init(address=self.address, log_to_driver=False, logging_level="warning")
            except ConnectionError as error:
                raise NotReady(
                    f"no Ray to join at {self.address}: start one, and run this on one of its nodes"
                ) from error
        ray.data.DataContext.get_current().enable_progress_bars = False
        most = max(1, min(len(parts), int(ray.cluster_resources().get("CPU", 1))))
        rows = ray.data.from_items(
            [{"part": pickle.dumps(part)} for part in parts], override_num_blocks=len(parts)
        )
        strategy = ray.data.ActorPoolStrategy(min_size=1, max_size=most, initial_size=most)
        done = rows.map_batches(
            WorkActor,
            fn_constructor_args=(pickle.dumps(work),),
            batch_size=1,
            batch_format="numpy",
            compute=strategy,
            num_cpus=1,
        )
        for row in done.iter_rows():
            self.nodes.add(row["node"])
            yield pickle.loads(row["result"])


class WorkActor:
    """Runs in an actor, which keeps its work, and what that has opened, between parts."""

    def __init__(self, work: bytes) -> None:
        import ray

        self._work = pickle.loads(work)
        self._node = ray.get_runtime_context().get_node_id()

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[Any]]:
        results = [pickle.dumps(self._work(pickle.loads(part))) for part in batch["part"]]
        return {"result": results, "node": [self._node] * len(results)}
