"""`system_fingerprint` names the weights that made an answer, also while the champion changes."""

from __future__ import annotations

import itertools
import threading
from functools import partial
from pathlib import Path

import pytest

from artifacts.tensors import weights_hash
from evaluation.generation.decoder import generate
from evaluation.sampling import Sampling
from resources.home import Home
from tests.serving.gateway_server import CHAT, ask, call, content, eventually, promote
from tests.serving.tiny_model import make_model

CLIENTS, TOKENS = 4, 12


@pytest.mark.timeout(0)
@pytest.mark.parametrize(
    ("requests", "swaps"),
    [
        pytest.param(300, 5, marks=pytest.mark.slow),
        pytest.param(10_000, 50, marks=pytest.mark.soak),
    ],
)
def test_no_answer_is_by_other_weights_than_it_names(
    requests: int, swaps: int, url: str, home: Home, tmp_path: Path
) -> None:
    models = [make_model(tmp_path / f"model-{seed}", seed) for seed in range(3)]
    texts = {
        weights_hash(model)[:12]: generate(model, [CHAT], Sampling(max_new_tokens=TOKENS))[0].text
        for model in models
    }
    assert len(set(texts.values())) == len(models)

    def promoted(number: int) -> None:
        name = f"version-{number}"
        promote(home, name, models[number % len(models)])
        eventually(lambda: call(f"{url}/health/ready")[1].get("champion") == name)

    answers: list[tuple[str, str]] = []
    numbers = itertools.count()

    def client() -> None:
        while next(numbers) < requests:
            status, reply = ask(url, max_tokens=TOKENS)
            answers.append(
                (reply["system_fingerprint"], content(reply)) if status == 200 else ("", "")
            )

    def answered(count: int) -> bool:
        return len(answers) >= count

    promoted(0)
    clients = [threading.Thread(target=client) for _ in range(CLIENTS)]
    for each in clients:
        each.start()
    for number in range(1, swaps + 1):
        eventually(partial(answered, number * requests // (swaps + 1)), 1800)
        promoted(number)
    for each in clients:
        each.join()
    assert len(answers) == requests
    assert {weights for weights, _ in answers} == set(texts)
    assert not [each for each in answers if texts[each[0]] != each[1]]
