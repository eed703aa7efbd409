"""The environment variables of a training's processes."""

from __future__ import annotations

import os

from verl_jobs.config.training import Training


def environment(training: Training) -> dict[str, str]:
    """Return the environment variables that every process of a run needs before it imports verl."""
    common = {
        "TRANSFER_QUEUE_ENABLE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        # without it hydra turns every exception of verl, including dead actors, into exit code 1
        "HYDRA_FULL_ERROR": "1",
        # the default of 8 logs a warning at every put and get on a small host
        "TQ_NUM_THREADS": "1",
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_DEDUP_LOGS": "0",
        # from `ray job stop` to SIGKILL: time to finish a step and save; Ray's default of 3 s is
        # too short
        "RAY_JOB_STOP_WAIT_TIME_S": "60",
        "HF_HUB_OFFLINE": os.environ.get("HF_HUB_OFFLINE", "1"),
        "WANDB_MODE": "online" if os.environ.get("WANDB_API_KEY") else "offline",
    }
    if training.scale.placement == "separate_async":
        # trainer_separate_async.py of verl 0.9.1, line 181: logger.info(..., flush=True), a
        # TypeError wherever that level is logged
        common["VERL_LOGGING_LEVEL"] = "WARNING"
    if training.engine != "hf":
        return (
            common
            # the values that verl sets when it starts Ray itself (verl/trainer/constants_ppo.py)
            | {
                "VLLM_LOGGING_LEVEL": "WARN",
                "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "true",
                "VLLM_DISABLE_COMPILE_CACHE": "1",
                **({"CUDA_DEVICE_MAX_CONNECTIONS": "1"} if training.scale.megatron else {}),
            }
        )
    return common | {
        "VERL_PLATFORM": "cpu",
        # verl registers its FSDP engine for cuda and npu; the code is device-neutral
        "VERL_ENGINE_DEVICE": "cuda",
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # otherwise Ray hides the logical GPUs
        # spinning threads would take cores from the process that has work
        "OMP_WAIT_POLICY": "PASSIVE",
    }
