"""How busy all machines are that have workers of this training, each asked on its own node of the Ray that this process is connected to."""

from __future__ import annotations

from typing import Any

from verl_jobs.metrics.machine import OF, Reading, load, reading

ANSWER_S = 10.0  # what is later is left out of this step


class Machines:
    """What each said when it was asked last."""

    def __init__(self) -> None:
        import ray

        self.own = ray.get_runtime_context().get_node_id() if ray.is_initialized() else ""
        self.places = {self.own: ""}
        self.before: dict[str, Reading] = {self.own: reading()}

    def loads(self) -> dict[str, float]:
        """By the names of verl_jobs/metrics/machine.py: plain where there is one machine, with its address where there are several.

        What cannot be had is left out, with a line that says why: no step is lost for it.
        """
        try:
            places = self.places = _places() or self.places  # at its end the workers are gone
            found = self._ask([node for node in places if node != self.own]) | (
                {self.own: reading()} if self.own in places else {}
            )
        except Exception as error:  # a Ray that is going, or does not answer
            print(
                f"how busy the machines are is not known: {type(error).__name__}: {error}",
                flush=True,
            )
            return {}
        loads = {node: load(self.before.get(node), after) for node, after in found.items()}
        self.before |= found
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

        def asked(node: str) -> Any:
            return (
                ray.remote(reading)
                .options(
                    num_cpus=0,
                    max_retries=0,
                    scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False),
                )
                .remote()
            )

        running = {asked(node): node for node in nodes}
        answered, late = (
            ray.wait(list(running), num_returns=len(running), timeout=ANSWER_S)
            if running
            else ([], [])
        )
        for each in late:
            ray.cancel(each, force=True)
        found = {}
        for each in answered:
            try:
                found[running[each]] = ray.get(each)
            except ray.exceptions.RayError as error:  # the node went meanwhile
                print(f"a machine did not say how busy it is: {type(error).__name__}", flush=True)
        return found


def _places() -> dict[str, str]:
    """Nodes that have actors of this process's Ray job, and their addresses."""
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
