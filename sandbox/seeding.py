"""Which zygote runs a job with a given seed, and the environment that the zygote starts with."""

from __future__ import annotations

HASH_SEEDS = 6  # zygotes that seeds other than 0 share
# POSIX rules, because a program's root has no time zone files
TIME_ZONES = ("UTC-14", "UTC+12", "EST5EDT,M3.2.0,M11.1.0", "IST-5:30", "UTC+5", "UTC-9")


def hash_seed(seed: int) -> int:
    """Return the hash seed of the zygote for this seed: 0 for 0, else 1 to HASH_SEEDS."""
    return 1 + (seed - 1) % HASH_SEEDS if seed else 0


def environment(seed: int) -> dict[str, str]:
    """Return the environment variables of that zygote."""
    number = hash_seed(seed)
    return {
        "PYTHONHASHSEED": str(number),
        "TZ": TIME_ZONES[number - 1] if number else "UTC",
    }
