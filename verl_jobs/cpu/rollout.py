"""Rollout backends "hf_cpu" and "transformers" (the same on a GPU, never run on one): a Ray actor
that batches requests and decodes with transformers.

- HFServer: the actor; collects requests that arrive together and decodes them as one batch.
- HFReplica: starts one server per data-parallel rank (tensor parallelism must be 1).
- HFRollout: runs in the trainer process and sends new weights to its server.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import ray
import torch
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
from verl.plugin.platform import get_platform
from verl.workers.rollout.base import BaseRollout
from verl.workers.rollout.replica import RolloutReplica, TokenOutput
from verl.workers.rollout.utils import ensure_async_iterator

from artifacts.tensors import tensors_hash
from decoding.batch import MIN_PART, Row, decode
from decoding.checkpoint import load
from decoding.draws import nth_seed, uniform_of
from verl_jobs.config.lora import merge_adapter, plain_name
from verl_jobs.samples import BY_LENGTH, EngineWeights, SampledTokens, weight_fields
from verl_jobs.trainer.export import aliases, raw

GPU_NAME = "transformers"  # verl's name of this engine on a GPU
QUIET_SECONDS = 0.03  # a batch starts after this long without a new request


def server_name(replica_rank: int) -> str:
    return f"hf_cpu_server_{replica_rank}"


def sampled(row: Row, weights: EngineWeights) -> SampledTokens:
    reason = "completed" if row.ending == "end" else BY_LENGTH
    return SampledTokens(row.tokens, row.log_probs, reason, weights)


class HFServer:
    """Ray actor with the server interface that verl's LLM client and checkpoint engine call."""

    def __init__(
        self, model_path: str, config: dict[str, Any], threads: int, gpu: str = ""
    ) -> None:
        """gpu: Ray's number of the GPU that the trainer is on; empty: decode on the CPU."""
        if gpu:  # before CUDA is first used in this process
            os.environ["CUDA_VISIBLE_DEVICES"] = gpu
        self.threads = 1 if gpu else threads
        self.config = config
        # Weights arrive with the first update; building from the config avoids reading them from
        # disk.
        self.checkpoint = load(
            Path(model_path), "cuda" if gpu else "cpu", torch.float32, weights=False
        )
        self.model = self.checkpoint.model
        self.base: dict[str, torch.Tensor] = {}  # with LoRA: the weights that adapters are added to
        self.weights = EngineWeights()
        self.pending: list[tuple[Row, asyncio.Future[SampledTokens]]] = []
        self.seen: Counter[tuple[int, ...]] = Counter()
        self.worker: asyncio.Task[None] | None = None
        self.resumed = asyncio.Event()
        self.resumed.set()
        self.busy = asyncio.Lock()  # a batch is decoded, or the weights change

    @asynccontextmanager
    async def _decoding(self) -> AsyncIterator[None]:
        """Wait until generation is not paused; all within it is by the same weights."""
        await self.resumed.wait()
        async with self.busy:
            yield

    async def load_adapter(
        self, adapter: dict[str, torch.Tensor], scale: float, global_steps: int | None
    ) -> None:
        await self.load_weights(merge_adapter(self.base, adapter, scale), global_steps)

    async def load_base(self, weights: dict[str, torch.Tensor]) -> None:
        self.base = {plain_name(name): tensor for name, tensor in weights.items()}

    async def load_weights(
        self, weights: dict[str, torch.Tensor], global_steps: int | None
    ) -> None:
        async with self.busy:
            missing, unexpected = self.model.load_state_dict(weights, strict=False)
            step = self.weights.step if global_steps is None else global_steps
            self.weights = EngineWeights(step, await asyncio.to_thread(self._digest))
        missing = [
            m
            for m in missing
            if not (m == "lm_head.weight" and self.model.config.tie_word_embeddings)
        ]
        if missing or unexpected:
            raise ValueError(f"weight update does not fit the model: {missing=} {unexpected=}")
        self.seen.clear()

    def _digest(self) -> str:
        """Return the hash of the weights that decode: 1 s a GiB on one core."""
        tied = aliases(self.model)
        state = self.model.state_dict()
        return tensors_hash(raw({name: state[name].cpu() for name in state if name not in tied}))

    async def generate_batch(
        self,
        prompts: list[list[int]],
        counts: list[int],
        params: dict[str, Any],
        limits: list[int] | None = None,
    ) -> list[list[SampledTokens]]:
        """Return completions per prompt, all by the same weights.

        Prompt i gets `counts[i]` completions. limits: maximum tokens of a completion of prompt i;
        None: the configuration's.
        """
        limit_params: list[dict[str, int]] = (
            [{"max_tokens": limit} for limit in limits] if limits else [{}] * len(prompts)
        )
        prompt_rows = zip(prompts, counts, limit_params, strict=True)
        rows = [
            self._row(ids, params | limit)
            for ids, count, limit in prompt_rows
            for _ in range(count)
        ]
        async with self._decoding():
            weights, size = self.weights, self.config["max_num_seqs"]
            for start in range(0, len(rows), size):
                await asyncio.to_thread(self._decode, rows[start : start + size])
        completions = (sampled(row, weights) for row in rows)
        return [[next(completions) for _ in range(count)] for count in counts]

    def _decode(self, rows: list[Row]) -> None:
        """Decode rows in a part for each thread: threads of one operation would wait for each other
        wherever another process takes a core.
        """
        parts = max(1, min(self.threads, len(rows) // MIN_PART))
        torch.set_num_threads(self.threads // parts)
        size = -(-len(rows) // parts)
        with ThreadPoolExecutor(parts) as pool:
            of_part = partial(decode, self.model, self.checkpoint.pad)
            list(pool.map(of_part, (rows[at : at + size] for at in range(0, len(rows), size))))

    def _row(self, prompt: list[int], params: dict[str, Any]) -> Row:
        """Return the row of a request; verl's top_k is not supported, and nothing here sets it."""
        c = self.config
        limit = params.get("max_tokens") or params.get("max_new_tokens")
        limit = limit or min(
            c["response_length"], c["prompt_length"] + c["response_length"] - len(prompt)
        )
        row = Row(
            prompt,
            limit=max(1, min(limit, self.checkpoint.positions - len(prompt))),
            # stop_token_ids are set by tool parsers
            ends=self.checkpoint.ends | set(params.get("stop_token_ids") or ()),
            temperature=float(params.get("temperature", 1.0)),
            top_p=float(params.get("top_p", 1.0)),
        )
        if row.temperature > 0:
            # The k-th request for a prompt at one weight version always uses the same numbers.
            key = tuple(prompt)
            seed = nth_seed(nth_seed(c["seed"], self.weights.step), self.seen[key])
            row.uniform = uniform_of(seed, prompt)
            self.seen[key] += 1
        return row

    async def generate(
        self, prompt_ids: Any, sampling_params: dict[str, Any], request_id: str, **_: Any
    ) -> TokenOutput:
        row = self._row(list(map(int, prompt_ids)), sampling_params)
        future = asyncio.get_running_loop().create_future()
        self.pending.append((row, future))
        if self.worker is None or self.worker.done():
            self.worker = asyncio.create_task(self._drain())
        tokens, log_probs, reason, weights = await future
        return TokenOutput(
            token_ids=tokens,
            log_probs=log_probs if sampling_params.get("logprobs") else None,
            stop_reason=reason,
            extra_fields=weight_fields([weights]),
        )

    async def _drain(self) -> None:
        while self.pending:
            count = -1
            while len(self.pending) != count and len(self.pending) < self.config["max_num_seqs"]:
                count = len(self.pending)
                await asyncio.sleep(QUIET_SECONDS)
            self.pending.sort(key=lambda item: item[0].prompt)
            size = self.config["max_num_seqs"]
            batch, self.pending = self.pending[:size], self.pending[size:]
            try:
                async with self._decoding():
                    weights = self.weights
                    await asyncio.to_thread(self._decode, [row for row, _ in batch])
            except BaseException as error:  # pass it to the callers; their agent loops report it
                for _, future in batch:
                    future.set_exception(error)
                continue
            for row, future in batch:
                future.set_result(sampled(row, weights))

    # Nothing is freed between phases: weights and caches are in host memory anyway.
    async def wake_up(self, *args: Any, **kwargs: Any) -> None: ...

    async def sleep(self, *args: Any, **kwargs: Any) -> None: ...

    async def clear_kv_cache(self) -> None: ...

    async def release_kv_cache(self) -> None: ...

    async def resume_kv_cache(self) -> None: ...

    async def abort_all_requests(self, reject_request: bool = False) -> None:
        """Pause: finish the batch that is decoded, and start no other.

        Nothing is aborted, so that each completion is by one version of the weights.
        """
        self.resumed.clear()
        async with self.busy:
            pass

    async def resume_generation(self) -> None:
        self.resumed.set()

    async def start_profile(self, **kwargs: Any) -> None: ...

    async def stop_profile(self) -> None: ...


class HFReplica(RolloutReplica):  # type: ignore[misc]  # verl has no types
    async def launch_servers(self) -> None:
        if self.world_size != 1:
            raise ValueError("this engine needs rollout tensor/data/pipeline parallel sizes of 1")
        gpu, placement = await self._beside_trainer() if self.config.name == GPU_NAME else ("", {})
        keys = ("prompt_length", "response_length", "max_num_seqs", "seed")
        server = (
            ray.remote(HFServer)
            .options(
                name=server_name(self.replica_rank),
                num_cpus=0,
                max_concurrency=self.max_concurrency,
                **placement,
            )
            .remote(
                self.model_config.path,
                {key: getattr(self.config, key) for key in keys},
                int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1)),
                gpu,
            )
        )
        self.servers = [server]
        self._server_handle = server
        self._server_address = server_name(self.replica_rank)

    async def _beside_trainer(self) -> tuple[str, dict[str, Any]]:
        """Return the trainer's GPU, and Ray's options of an actor that shares it.

        As verl's server of vLLM: on the same node, without a GPU of its own.
        """
        platform = get_platform()
        resource = platform.ray_resource_name()
        node, gpu = await self.workers[0].__ray_call__.remote(
            lambda worker: (
                ray.get_runtime_context().get_node_id(),
                ray.get_runtime_context().get_accelerator_ids()[resource][0],
            )
        )
        variables = dict.fromkeys(platform.ray_noset_envvars(), "1")
        return str(gpu), {
            "scheduling_strategy": NodeAffinitySchedulingStrategy(node, soft=False),
            "runtime_env": {"env_vars": variables},
        }


class HFRollout(BaseRollout):  # type: ignore[misc]  # verl has no types
    def __init__(
        self, config: Any, model_config: Any, device_mesh: Any, replica_rank: int = -1
    ) -> None:
        super().__init__(config, model_config, device_mesh)
        self.replica_rank = int(os.environ["RANK"]) if replica_rank == -1 else replica_rank
        self.is_leader_rank = True
        self.server: Any = None

    async def resume(self, tags: list[str]) -> None: ...

    async def release(self) -> None: ...

    async def update_weights(
        self,
        weights: Any,
        global_steps: int | None = None,
        peft_config: dict[str, Any] | None = None,
        base_sync_done: bool = True,
        **_: Any,
    ) -> None:
        if self.server is None:
            self.server = ray.get_actor(server_name(self.replica_rank))
        state = {
            name: tensor.detach().float().cpu().clone()
            async for name, tensor in ensure_async_iterator(weights)
        }
        if peft_config is None:
            await self.server.load_weights.remote(state, global_steps)
        elif base_sync_done:  # verl sends the frozen weights once, then only adapters
            await self.server.load_adapter.remote(
                state, peft_config["lora_alpha"] / peft_config["r"], global_steps
            )
        else:
            await self.server.load_base.remote(state)
