"""Compare the planner's memory and seconds with those of published runs.

    python -m measurements.published_runs

Every figure under `RUNS`, `LOGS` and `ROLLOUTS` is copied from its source; none was measured here.
The planner's rates (verl_jobs/planner/seconds.py) were chosen by the rows marked `*`, so that only
the others test them. The memory formulas contain no figure of these runs but the gathered gradient,
which was added because of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from verl_jobs.config.lora import Lora
from verl_jobs.config.training import Training
from verl_jobs.planner.memory import update_bytes
from verl_jobs.planner.planner import estimate
from verl_jobs.planner.seconds import UPDATE_S, forward_flops, rollout_seconds
from verl_jobs.planner.shapes import GIB, GPUS, SHAPES, Gpu, ModelShape

A6000 = Gpu("A6000", 48 * GIB, 155e12, 0.77e12)
SMALL = ModelShape(
    name="Qwen3-0.6B", hidden=1024, layers=28, heads=16, kv_heads=8, intermediate=3072,
    vocabulary=151_936, tied=True, head=128,
)  # fmt: skip
FOUR = ModelShape(
    name="Qwen3-4B", hidden=2560, layers=36, heads=32, kv_heads=8, intermediate=9728,
    vocabulary=151_936, tied=True, head=128,
)  # fmt: skip
SEVEN = SHAPES["Qwen/Qwen2.5-Coder-7B"]  # of the same shape as Qwen2-7B and Qwen2.5-Math-7B
FOURTEEN, THIRTY_TWO = SHAPES["Qwen/Qwen2.5-Coder-14B"], SHAPES["Qwen/Qwen2.5-Coder-32B"]
FUSED, TORCH = 0, 16  # bytes of the head: of prime-rl's RL trainer, and of its SFT trainer


@dataclass(frozen=True)
class Run:
    """Two forward and backward passes a GPU of one sequence each, and an optimizer step."""

    gpu: Gpu
    gpus: int
    shape: ModelShape
    head: int
    rank: int  # of the adapters; 0: full training
    length: int
    seconds: float  # of a step
    gib: float  # peak on a GPU

    @property
    def chose(self) -> bool:
        """Whether the rates were chosen by this row."""
        return self.seconds in CHOSE


# prime-rl, benchmarks/baselines/*.json at commit 559b447 (dense models, activations recomputed),
# https://github.com/PrimeIntellect-ai/prime-rl; of 15 January 2026
H100, H200, B200 = GPUS["H100"], GPUS["H200"], GPUS["B200"]
PASSES: dict[tuple[Gpu, int, ModelShape, int], tuple[tuple[int, int, float, float], ...]] = {
    # GPU, GPUs, model, head: (rank of the adapters, tokens, seconds, GiB), ...
    (H100, 8, FOUR, FUSED): (
        (0, 16_384, 4.69, 17.10),
        (0, 65_536, 30.29, 36.10),
        (16, 16_384, 5.38, 10.26),
        (16, 65_536, 32.00, 28.85),
    ),
    (H100, 8, FOUR, TORCH): ((0, 16_384, 5.01, 54.63),),
    (H100, 1, FOUR, FUSED): (
        (16, 16_384, 5.26, 23.30),
        (16, 65_536, 31.49, 41.99),
    ),
    (H100, 1, SMALL, FUSED): (
        (0, 16_384, 1.99, 12.53),
        (0, 65_536, 12.18, 19.56),
        (16, 16_384, 2.45, 5.15),
        (16, 65_536, 13.16, 11.45),
    ),
    (H100, 1, SMALL, TORCH): (
        (0, 8_192, 0.62, 31.74),
        (0, 16_384, 1.28, 52.84),
    ),
    (H200, 8, FOUR, FUSED): (
        (0, 16_384, 4.42, 17.10),
        (0, 65_536, 29.89, 36.10),
        (16, 16_384, 5.01, 10.26),
        (16, 65_536, 31.42, 28.85),
    ),
    (H200, 8, FOUR, TORCH): ((0, 16_384, 4.71, 54.63),),
    (B200, 8, FOUR, FUSED): (
        (0, 16_384, 4.63, 17.04),
        (16, 16_384, 5.69, 10.22),
        (16, 65_536, 41.86, 28.81),
    ),
    (B200, 8, FOUR, TORCH): (
        (0, 16_384, 3.74, 54.59),
        (0, 65_536, 39.61, 171.53),
    ),
    (A6000, 1, SMALL, FUSED): (
        (0, 16_384, 7.46, 12.47),
        (16, 16_384, 9.23, 5.09),
        (16, 65_536, 65.77, 11.45),
        (0, 65_536, 52.80, 11.73),  # of 24 June 2026, by a later prime-rl
    ),
    (A6000, 1, SMALL, TORCH): ((0, 8_192, 2.46, 31.21),),
    (A6000, 1, FOUR, FUSED): ((16, 16_384, 24.43, 23.30),),
    (A6000, 4, SMALL, FUSED): (
        (0, 65_536, 63.90, 6.30),  # of 24 June 2026, by a later prime-rl
    ),
}
CHOSE = {4.69, 30.29, 1.99, 12.18}  # seconds of the rows that the rates were chosen by
RUNS = tuple(
    Run(gpu, gpus, shape, head, rank=rank, length=length, seconds=seconds, gib=gib)
    for (gpu, gpus, shape, head), passes in PASSES.items()
    for rank, length, seconds, gib in passes
)


@dataclass(frozen=True)
class Log:
    """A step of verl, by its log: GRPO or GPG of a 7B model on 8 GPUs."""

    title: str
    gpu: Gpu
    answer: int  # maximum tokens
    prompt: float  # mean tokens
    mean: float  # tokens of a completion; there are 5,120
    recomputes: bool
    update_s: float
    log_prob_s: float
    gen_s: float  # `generate_sequences`, or `gen` where it is missing
    chose: bool = False  # whether H20's share was chosen by the update


# The logs do not name the GPU. It is the one whose peak speed follows from the tokens, the seconds
# and the share of the peak (`perf/mfu/actor`) that verl logs.
# https://github.com/diqiuzhuanzhuan/verldata, run_logs/qwen2-7b_math.log: means of 210 steps;
# https://github.com/eric-haibin-lin/verl-data, gsm8k/qwen2-7b-fsdp2.log: step 102
LOGS = (
    Log("GPG, FSDP", GPUS["A100-80"], answer=1024, prompt=101.0, mean=315.1, recomputes=True,
        update_s=140.96, log_prob_s=35.58, gen_s=72.04),
    Log("GRPO, FSDP2", GPUS["H20"], answer=1024, prompt=93.7, mean=159.7, recomputes=False,
        update_s=65.57, log_prob_s=22.07, gen_s=39.13, chose=True),
)  # fmt: skip


@dataclass(frozen=True)
class Rollout:
    """Rollouts of a 7B model that takes turns with the trainer on H20 GPUs."""

    gpus: int
    answer: int  # maximum tokens
    seconds: float
    chose: bool = False


# verl, docs/advance/fully_async.md (28k) and one_step_off.md (20k) at commit b178a3c, column `gen`
# (`generate_sequences` of the second) of "colocate sync": 512 problems x 16 completions.
# Engines over 4 GPUs as in the scripts beside it. The mean lengths are not published.
ROLLOUTS = (
    Rollout(16, 20_480, 247),
    Rollout(32, 28_672, 357.41),
    Rollout(64, 28_672, 150.72),
    Rollout(128, 28_672, 177.85, chose=True),
)

# Layouts with which trainings were published. Whether the check accepts them:
LONG = {"engine": "vllm", "prompt_tokens": 2048, "learning_rate": 1e-6, "steps": 20}
LAYOUTS: dict[str, tuple[ModelShape, Gpu, Mapping[str, object], Mapping[str, object]]] = {
    # rllm, scripts/deepcoder/train/deepcoder_14b_coding_16k.sh at 8766fff
    "DeepCoder-14B, 32 x A100-80": (
        FOURTEEN,
        GPUS["A100-80"],
        {"answer_tokens": 16_384, "ranks": 32, "problems_per_step": 128, "temperature": 0.6},
        {"nodes": 4, "micro_batch_tokens": 20_000, "sequence_parallel": 2, "updates": 2}
        | {"tensor_parallel": 2, "engine_memory": 0.8},
    ),
    # verl-recipe, dapo/run_dapo_qwen2.5_32b.sh at 48ea0a7, on 16 x 8 H800 (docs/algo/dapo.md)
    "DAPO-32B, 128 x H800": (
        THIRTY_TWO,
        H100,
        {"answer_tokens": 20_480, "ranks": 128, "problems_per_step": 512, "group_size": 16},
        {"nodes": 16, "micro_batch_tokens": 22_528, "sequence_parallel": 8, "updates": 16}
        | {"tensor_parallel": 4, "engine_memory": 0.8, "offload": "idle"},
    ),
    # verl, examples/tuning/7b/qwen2-7b_grpo_2_h800_fsdp_vllm.sh at b178a3c: the least that runs
    "verl's least for 7B, 2 x H800": (
        SEVEN,
        H100,
        {"prompt_tokens": 1024, "answer_tokens": 1024, "ranks": 2, "problems_per_step": 1024}
        | {"group_size": 5},
        {"accumulation": 40, "updates": 4, "tensor_parallel": 2, "engine_memory": 0.6}
        | {"offload": "idle"},
    ),
}


def main() -> None:
    print("updates: GPUs, model, head, adapters, tokens | seconds | GiB a GPU")
    for run in RUNS:
        lora = Lora(rank=run.rank) if run.rank else None
        memory = update_bytes(run.shape, run.length, run.gpus, lora=lora, logits=run.head)
        gib = sum(memory.values()) / GIB
        tokens = 2 * run.length
        flops = 4 * forward_flops(run.shape, run.length) * tokens
        seconds = UPDATE_S + flops / (run.gpu.flops * run.gpu.share)
        name = (
            f"{run.gpus} x {run.gpu.name}, {run.shape.name}, {'fused' if not run.head else 'torch'}"
        )
        print(
            f"{name}, {run.rank or '-'}, {run.length:,} | {_compared(seconds, run.seconds)}"
            f"{' *' if run.chose else ''} | {_compared(gib, run.gib)}"
        )
    print("\nverl's logs, 7B on 8 GPUs | update | old log-probabilities | rollout, seconds")
    for log in LOGS:
        length, chose = log.prompt + log.mean, " *" if log.chose else ""
        compute = 8 * log.gpu.flops * log.gpu.share
        forward = forward_flops(SEVEN, length) * 5120 * length / compute
        update = (4 if log.recomputes else 3) * forward + UPDATE_S * 4
        t = _training(
            {"answer_tokens": log.answer, "prompt_tokens": round(log.prompt), "ranks": 8}
            | {"problems_per_step": 1024, "group_size": 5},
            {"tensor_parallel": 2, "engine_memory": 0.6},
        )
        concurrent = estimate(SEVEN, log.gpu, t).concurrent
        rollout = rollout_seconds(SEVEN, log.gpu, t, concurrent, log.mean)
        print(
            f"{log.title}, {log.gpu.name} | {_compared(update, log.update_s)}{chose} | "
            f"{_compared(forward, log.log_prob_s)} | {_compared(rollout, log.gen_s)}"
        )
    print("\nrollouts, 7B on H20 | seconds: one completion of full length, all, published")
    for each in ROLLOUTS:
        t = _training(
            {"answer_tokens": each.answer, "ranks": each.gpus, "problems_per_step": 512}
            | {"group_size": 16},
            {"tensor_parallel": 4, "engine_memory": 0.8, "nodes": each.gpus // 8},
        )
        concurrent = estimate(SEVEN, GPUS["H20"], t).concurrent
        least, most = (rollout_seconds(SEVEN, GPUS["H20"], t, concurrent, mean) for mean in (1, 0))
        print(
            f"{each.gpus} GPUs, 2,048 + {each.answer:,} tokens | {least:.0f} to {most:.0f}, "
            f"{each.seconds:.0f}{' *' if each.chose else ''}"
        )
    print("\npublished layouts | accepted by the check")
    for name, (shape, gpu, training, scale) in LAYOUTS.items():
        found = estimate(shape, gpu, _training(training, scale))
        print(
            f"{name} | {'yes' if not found.faults else '; '.join(found.faults)}; update "
            f"{sum(found.update.values()) / GIB:.1f}, rollout "
            f"{sum(found.rollout.values()) / GIB:.1f} GiB a GPU"
        )


def _training(values: Mapping[str, object], scale: Mapping[str, object]) -> Training:
    return Training.model_validate({**LONG, **values, "scale": scale})


def _compared(planned: float, published: float) -> str:
    return f"{planned:.1f}, published {published:.1f}: {planned / published - 1:+.0%}"


if __name__ == "__main__":
    main()
