"""Batched sampling with transformers.

A row's completion depends only on its own prompt and random numbers, never on the other rows.
evaluation/generation/decoder.py is a second one, for benchmarks: it has stop words and threads, and
no log-probabilities. The two share only the forward pass, and their packages may not import each
other.
"""

from __future__ import annotations

from typing import Any

import torch

from verl_jobs.samples import SampledTokens


@torch.inference_mode()
def decode_batch(
    model: Any, requests: list[dict[str, Any]], eos: set[int], pad: int
) -> list[SampledTokens]:
    """Sample one continuation per request with a shared KV cache; finished rows leave the batch.

    Each request holds prompt_ids, max_tokens, temperature, top_k, top_p, stop (token ids) and
    `uniform` (one number in [0, 1) per token). Inverse-CDF sampling makes a row independent of the
    other rows and of the arrival order. Returns (token_ids, log_probs, stop_reason) per request;
    log_probs are those of the sampled distribution (vLLM's "processed_logprobs").
    """
    n, device = len(requests), model.device
    width = max(len(r["prompt_ids"]) for r in requests)
    ids = torch.full((n, width), pad, device=device)
    mask = torch.zeros((n, width), dtype=torch.long, device=device)
    for i, r in enumerate(
        requests
    ):  # left padding: the last column is every row's next-token position
        ids[i, width - len(r["prompt_ids"]) :] = torch.tensor(r["prompt_ids"], device=device)
        mask[i, width - len(r["prompt_ids"]) :] = 1
    position = (mask.cumsum(1) - 1).clamp(min=0)
    tokens: list[list[int]] = [[] for _ in range(n)]
    log_probs: list[list[float]] = [[] for _ in range(n)]
    reason = ["length"] * n
    alive = list(range(n))
    temperature = torch.tensor([max(r["temperature"], 0.0) for r in requests], device=device)
    cache = None
    while alive:
        out = model(
            input_ids=ids,
            attention_mask=mask,
            position_ids=position,
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=1,
        )
        cache = out.past_key_values
        logits = out.logits[:, -1].float()
        t = temperature[alive]
        greedy = t == 0
        scaled = logits / torch.where(greedy, torch.ones_like(t), t).unsqueeze(1)
        truncated = _truncate(scaled, [requests[i] for i in alive])
        log_p = truncated.log_softmax(-1)
        cdf = log_p.exp().double().cumsum(-1)
        u = torch.tensor(
            [requests[i]["uniform"][len(tokens[i])] for i in alive],
            dtype=torch.float64,
            device=device,
        )
        sampled = torch.searchsorted(cdf, (u * cdf[:, -1]).unsqueeze(1), right=True).squeeze(1)
        choice = torch.where(greedy, logits.argmax(-1), sampled.clamp(max=logits.shape[1] - 1))
        chosen_log_p = log_p.gather(1, choice.unsqueeze(1)).squeeze(1).tolist()
        keep = []
        for row, (i, token) in enumerate(zip(alive, choice.tolist(), strict=True)):
            tokens[i].append(token)
            log_probs[i].append(chosen_log_p[row])
            if token in eos or token in requests[i]["stop"]:
                reason[i] = "completed"
            elif len(tokens[i]) < requests[i]["max_tokens"]:
                keep.append(row)
        if not keep:
            break
        rows = torch.tensor(keep, device=device)
        if len(keep) < len(alive):
            cache.batch_select_indices(rows)
            mask, position = mask[rows], position[rows]
            alive = [alive[row] for row in keep]
        ids = choice[rows].unsqueeze(1)
        mask = torch.cat([mask, mask.new_ones(len(keep), 1)], 1)
        position = position[:, -1:] + 1
    return [(tokens[i], log_probs[i], reason[i]) for i in range(n)]


def _truncate(logits: torch.Tensor, requests: list[dict[str, Any]]) -> torch.Tensor:
    """Apply top-k and top-p of the first request; all requests of a verl batch share them."""
    top_k, top_p = requests[0]["top_k"], requests[0]["top_p"]
    if top_k > 0:
        kth = logits.topk(min(top_k, logits.shape[1])).values[:, -1:]
        logits = logits.masked_fill(logits < kth, float("-inf"))
    if top_p < 1:
        ordered, index = logits.sort(descending=True)
        before = ordered.softmax(-1).cumsum(-1) - ordered.softmax(-1)
        drop = torch.zeros_like(before, dtype=torch.bool).scatter(1, index, before >= top_p)
        logits = logits.masked_fill(drop, float("-inf"))
    return logits
