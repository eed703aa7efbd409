"""Settings of the gateway (`ratchet serve`)."""

from __future__ import annotations

from pydantic import (
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

from artifacts.section import Section


class Breaker(Section):
    """When a version gets no more requests for a while. Its requests then go to the champion, or to
    the version before it.
    """

    consecutive: PositiveInt = 5
    """Failures one after another that open the breaker."""
    share: float = Field(0.5, gt=0, le=1)
    """Share of failures among the last `window` requests that opens it."""
    window: PositiveInt = 20
    """Number of requests that the share is computed over; fewer never open it by the share."""
    slow_s: PositiveFloat = 30.0
    """A request that takes longer counts as a failure."""
    open_s: PositiveFloat = 5.0
    """Seconds until a few requests probe the version again."""
    probes: PositiveInt = 2
    """Successful probes that close the breaker; so many run at once."""


class Replicas(Section):
    """Copies of a version on a Ray cluster (engine `ray`). Ray Serve starts them, spreads the
    requests, replaces those that end, and adds or removes some with the load.
    """

    address: str = "auto"
    """Address of the cluster; `auto`: of this machine, or in the variable RAY_ADDRESS."""
    engine: str = "transformers"
    """Engine that each replica runs."""
    min_replicas: PositiveInt = 1
    """Replicas of a version without load."""
    max_replicas: PositiveInt = 1
    """Replicas of a version under load."""
    ongoing: PositiveFloat = 8.0
    """Requests that run on a replica at the same time, which Ray Serve aims at by their number."""
    cpus: NonNegativeFloat = 1.0
    """CPUs that Ray reserves for a replica."""
    gpus: NonNegativeFloat = 0.0
    """GPUs that Ray reserves for a replica; a part of one is possible."""

    @model_validator(mode="after")
    def can_run(self) -> Replicas:
        if self.max_replicas < self.min_replicas:
            raise ValueError(
                f"max_replicas {self.max_replicas} is less than min_replicas {self.min_replicas}"
            )
        if self.engine == "ray":
            raise ValueError("engine: a replica needs an engine that holds the model")
        return self


DRAIN_S = 30  # for requests under way after SIGTERM, or before a version is unloaded by force


class Serving(Section):
    """How requests are answered. TLS needs both files."""

    host: str = "127.0.0.1"
    """Address to listen on. Another one than the loopback needs API keys (`ratchet keys add`)."""
    liveness_port: NonNegativeInt = Field(0, le=65535)
    """Port for `GET /health/live` alone, without TLS and keys: it answers from a thread of its own,
    so also while the gateway is too busy to. 0: none.
    """
    engine: str = "transformers"
    """Engine that holds the models: a file of serving/engines."""
    upstream: str = Field("", pattern=r"^(https?://[^@]+)?$")
    """Server of the engine `openai`, up to /v1. Its key comes from the environment variable
    RATCHET_UPSTREAM_KEY.
    """
    upstream_model: str = ""
    """Name of the model there. Empty: the name of the version's checkpoint."""
    memory_gib: PositiveFloat = 4.0
    """Memory for the weights of all loaded versions together."""
    gpu_share: float = Field(0.45, gt=0, le=1)
    """Share of the GPU's memory for each version, with the engines `vllm` and `sglang`: the
    champion and the one before it are loaded together.
    """
    lora: bool = False
    """Whether versions that were trained as LoRA adapters are served as adapters of one process
    with their base, with the engines `vllm` and `sglang`. Otherwise their merged weights are
    served.
    """
    at_once: PositiveInt = 16
    """Requests that run at the same time on a version."""
    waiting: NonNegativeInt = 64
    """Requests that wait for their turn; more are refused with 429."""
    deadline_s: PositiveFloat = 60.0
    """Seconds that a request may take, waiting included."""
    stall_s: PositiveFloat = 20.0
    """Seconds without a new token after which a request fails."""
    default_tokens: PositiveInt = 256
    """Most tokens of a completion where the request names no number."""
    body_mib: PositiveFloat = 1.0
    """Largest body of a request."""
    body_s: PositiveFloat = 10.0
    """Seconds in which the head, and then the body of a request must arrive."""
    poll_s: PositiveFloat = 0.5
    """Seconds between two looks at the ledger."""
    requests_per_minute: PositiveInt = 600
    """Rate limit of an API key that sets none."""
    tls_certificate: str = ""
    """PEM file of the certificate. Empty: plain HTTP."""
    tls_key: str = ""
    """PEM file of its private key."""
    version_header: str = Field("", pattern=r"^[a-z0-9-]*$")
    """Header in which a proxy in front names the version of each request, if it splits the traffic
    of releases. The proxy must replace what a client sends. Empty: the gateway splits it.
    """
    breaker: Breaker = Breaker()
    replicas: Replicas = Replicas()

    @model_validator(mode="after")
    def both_files(self) -> Serving:
        if bool(self.tls_certificate) != bool(self.tls_key):
            raise ValueError("TLS needs both tls_certificate and tls_key")
        return self
