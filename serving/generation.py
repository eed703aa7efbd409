"""Generation of completions for scores and difficulties: a Ray job's entry point.

`python -m serving.generation FOLDER/job.json` generates the requests in that folder
(evaluation/generation/requests.py) into their cache. The model runs in a Ray task that has as many
GPUs as one engine of the training: with transformers in that process, or in a server process of the
gateway's engines. A task that waits for a node, or loses it, is Ray's to start; completions that
are in the cache are not generated again.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from evaluation.generation.openai_client import EndpointSource
from evaluation.generation.requests import Requests, write_identities
from resources.config.serving import Serving
from serving.server_process import ServerProcess
from serving.server_versions import Served, ServerProgram
from verl_jobs import single_entry
from verl_jobs.job import TrainingJob
from verl_jobs.trainer import progress, trainer_lease
from verl_jobs.trainer.entry import DIED

AT_ONCE = 64  # requests that run on a server at the same time
REQUEST_S = 3600.0  # a long completion beside many others
SHARE = 0.9  # of a GPU's memory: nothing else runs there
NAME = "scored"  # of the model on its server


class Servers:
    """The server of the checkpoint in use; another checkpoint replaces it."""

    def __init__(self, program: ServerProgram, gpus: int) -> None:
        self.program, self.gpus = program, gpus
        self._running: dict[Path, ServerProcess] = {}

    def __call__(self, folder: Path) -> EndpointSource:
        """Return the server of these weights. Raises EngineFailed."""
        if folder not in self._running:
            self.close()
            served = Served(str(folder), NAME, gpus=self.gpus)
            settings = Serving(at_once=AT_ONCE, gpu_share=SHARE)
            self._running[folder] = self.program.start(served, settings)
        url = f"{self._running[folder].address}/v1"
        return EndpointSource(url, NAME, at_once=AT_ONCE, timeout_s=REQUEST_S)

    def close(self) -> None:
        for process in self._running.values():
            process.close()
        self._running.clear()


def main(path: Path, owned: bool = False) -> None:
    """Generate the job of this file. owned: whether a process renews its lease."""
    single_entry.run(path, owned, _on_ray)


def _on_ray(job: TrainingJob) -> None:
    """Generate on a node that has the GPUs; wait until there is one."""
    import ray

    if not ray.is_initialized():
        ray.init(log_to_driver=True)
    requests = Requests.read(job.path)
    task = ray.remote(num_cpus=1, num_gpus=requests.gpus)(generate)
    try:
        identities = ray.get(task.remote(str(job.path)))
    except ray.exceptions.RayTaskError:
        raise
    except ray.exceptions.RayError as error:
        print(f"a process of the run died: {str(error).splitlines()[0]}", flush=True)
        sys.exit(DIED)
    write_identities(job.path, identities)


def generate(folder: str) -> dict[str, dict[str, Any]]:
    """Generate the requests of a job's folder. Return the identity of each checkpoint's
    completions.
    """
    from evaluation.generation.completion_sources import FolderSource, complete
    from serving.engines import engine_of

    # the server process is never behind the proxy that HTTP_PROXY names
    os.environ["NO_PROXY"] = os.environ["no_proxy"] = "127.0.0.1"
    requests, sources = Requests.read(Path(folder)), dict[str, FolderSource]()
    program = engine_of(requests.engine) if requests.engine in ("vllm", "sglang") else None
    servers = Servers(program, requests.gpus) if isinstance(program, ServerProgram) else None
    total = sum(len(each.prompts) * each.sampling.n for each in requests.requests)
    before = 0
    try:
        for each in requests.requests:
            source = FolderSource(
                each.checkpoint,
                each.form,
                engine=requests.engine if servers else "hf",  # type: ignore[arg-type]
                serve=servers,
            )
            progress.begin(Path(folder), f"{before} of {total} completions")

            def on_progress(done: int, _: int, before: int = before) -> None:
                progress.begin(Path(folder), f"{before + done} of {total} completions")

            source = sources.setdefault(str(each.checkpoint), source)
            complete(each.prompts, source, each.sampling, requests.cache, on_progress)
            before += len(each.prompts) * each.sampling.n
    finally:
        if servers:
            servers.close()
    return {checkpoint: source.identity for checkpoint, source in sources.items()}


if __name__ == "__main__":
    main(Path(sys.argv[1]), trainer_lease.OWNED in sys.argv[2:])
