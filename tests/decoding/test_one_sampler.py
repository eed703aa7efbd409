"""Rollouts, scores and the gateway draw the same tokens from a checkpoint."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from artifacts.tensors import weights_hash
from decoding.checkpoint import Checkpoint, load
from decoding.draws import nth_seed
from evaluation.generation.decoder import generate
from evaluation.sampling import Chat, Sampling
from serving.completion import EngineReply, EngineRequest, complete
from serving.engines.transformers import TransformersEngine
from verl_jobs.samples import EngineWeights
from verl_jobs.sft.tiny_model import TinyModel, make

# importing verl takes seconds
pytestmark = pytest.mark.slow
SEED, TOKENS, DRAWS, STEP = 11, 24, 3, 2
TEXTS = ("sort the list", "double each number of a long list of numbers", "x")
PROMPTS: list[Chat] = [[{"role": "user", "content": text}] for text in TEXTS]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    make(
        TinyModel(hidden=32, layers=2, vocabulary=300),
        ["sort the list", "return sorted(x)"] * 4,
        folder,
    )
    return folder


def of_a_rollout(
    checkpoint: Checkpoint, folder: Path, params: dict[str, float], threads: int
) -> list[str]:
    from verl_jobs.cpu.rollout import HFServer

    async def groups() -> list[str]:
        server = HFServer(str(folder), {"seed": SEED, "max_num_seqs": 4}, threads)
        await server.load_weights(checkpoint.model.state_dict(), STEP)
        ids = [checkpoint.encode(prompt) for prompt in PROMPTS]
        generated = await server.generate_batch(
            ids, [DRAWS] * len(ids), {"max_tokens": TOKENS} | params
        )
        completions = [completion for group in generated for completion in group]
        assert {each.weights for each in completions} == {EngineWeights(STEP, weights_hash(folder))}
        return [checkpoint.decode(each.tokens) for each in completions]

    return asyncio.run(groups())


def of_the_gateway(folder: Path, seed: int, params: dict[str, float]) -> list[str]:
    engine = TransformersEngine(folder, rows=5)

    async def replies() -> list[list[EngineReply]]:
        requests = [EngineRequest(p, TOKENS, seed=seed, n=DRAWS, **params) for p in PROMPTS]  # type: ignore[arg-type]
        return await asyncio.gather(*(complete(engine, request) for request in requests))

    try:
        return [reply.text for group in asyncio.run(replies()) for reply in group]
    finally:
        engine.close()


@pytest.mark.parametrize(
    ("params", "threads"), [({"temperature": 0.9}, 1), ({"temperature": 1.0, "top_p": 0.8}, 2)]
)
def test_rollout_score_and_gateway_give_the_same_completions(
    folder: Path, params: dict[str, float], threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("verl_jobs.cpu.rollout.MIN_PART", 1)  # rows of a thread
    seed = nth_seed(SEED, STEP)  # of the rollouts by the weights of this step
    sampling = Sampling(n=DRAWS, max_new_tokens=TOKENS, seed=seed, **params)  # type: ignore[arg-type]
    scored = [output.text for output in generate(folder, PROMPTS, sampling)]
    assert len(set(scored)) == len(scored)
    assert of_the_gateway(folder, seed, params) == scored
    assert of_a_rollout(load(folder, "cpu"), folder, params, threads) == scored
