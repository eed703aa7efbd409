"""Load of all machines with workers of this training, measured on its Ray nodes."""

from __future__ import annotations

from typing import Any

from verl_jobs.metrics.machine import OF, Reading, load, reading

ANSWER_S = 10.0  # later replies are left out of this step


class Machines:
    """The machines of a training and their last readings."""

    def __init__(self) -> None:
        import ray

        self.own = ray.get_runtime_context().get_node_id() if ray.is_initialized() else ""
        self.places = {self.own: ""}
        self.before: dict[str, Reading] = {self.own: reading()}

    def loads(self) -> dict[str, float]:
        """Return the loads by the names of verl_jobs/metrics/machine.py.

        With several machines, each name is followed by the machine's address. Values that cannot be
        measured are left out and the reason is printed, so that no step fails because of them.
        """
        try:
            # at the end of the run the workers are gone
            places = self.places = _nodes() or self.places
            readings = self._ask([node for node in places if node != self.own]) | (
                {self.own: reading()} if self.own in places else {}
            )
        except Exception as error:  # Ray is shutting down or does not respond
            print(
                f"the load of the machines is unknown: {type(error).__name__}: {error}",
                flush=True,
            )
            return {}
        loads = {node: load(self.before.get(node), after) for node, after in readings.items()}
        self.before |= readings
        names = {
            node: f"{OF}{address}" if len(places) > 1 else "" for node, address in places.items()
        }
        return {
            f"{name}{names[node]}": value
            for node, each in sorted(loads.items(), key=lambda one: places[one[0]])
            for name, value in each.items()
        }

    def _ask(self, nodes: list[str]) -> dict[str, Reading]:
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        def start_reading(node: str) -> Any:
            return (
                ray.remote(reading)
                .options(
                    num_cpus=0,
                    max_retries=0,
                    scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False),
                )
                .remote()
            )

        running = {start_reading(node): node for node in nodes}
        finished, late = (
            ray.wait(list(running), num_returns=len(running), timeout=ANSWER_S)
            if running
            else ([], [])
        )
        for task in late:
            ray.cancel(task, force=True)
        readings = {}
        for task in finished:
            try:
                readings[running[task]] = ray.get(task)
            except ray.exceptions.RayError as error:  # the node disappeared meanwhile
                print(f"no load from one machine: {type(error).__name__}", flush=True)
        return readings


def _nodes() -> dict[str, str]:
    """Return the nodes that have actors of this Ray job, with their addresses."""
    import ray

    if not ray.is_initialized():
        return {}
    from ray._private.state import state  # as in verl_jobs/trainer/dead_actors.py

    job = ray.JobID.from_hex(ray.get_runtime_context().get_job_id())
    addresses = [
        actor["Address"]
        for actor in state.actor_table(None, job_id=job, actor_state_name="ALIVE").values()
    ]
    return {address["NodeID"]: address["IPAddress"] for address in addresses}
