"""What a chain would meet only after its warm-up, looked at before it begins: its algorithm, the policy it starts from, the disk its saves take.

In: a profile and its home. Out: nothing, or `NotReady` and `UnfitStart` with the key and the mend. What cannot be known yet (a hub model that has not
been fetched) is asked by `verl_jobs/preflight.py` when its folder is there.
"""

from __future__ import annotations

from pathlib import Path

from resources.chain import next_id
from resources.home import Home, NotReady
from resources.ledger import ledger_of
from resources.profile import Profile
from resources.room import shape_of_start
from verl_jobs.preflight import CannotTrain, check_algorithm, check_disk


def check_policy(home: Home, profile: Profile) -> None:
    """Raises NotReady and UnfitStart at the first fault."""
    shape = shape_of_start(profile)
    try:
        check_algorithm(profile.training)
        _check_start(home, profile)
        if shape is not None:
            check_disk(home.runs / next_id(home.runs), profile.training, shape.parameters)
    except CannotTrain as error:
        raise NotReady(str(error)) from None


def _check_start(home: Home, profile: Profile) -> None:
    """The folder of `base`, or the model that is made where there is neither `base` nor a champion to go on from."""
    training, warm_up = profile.training, profile.warm_up
    named = [(training.frozen, training.lora), (warm_up.frozen, warm_up.lora)]
    tokens = training.prompt_tokens + training.response_tokens
    if profile.base and Path(profile.base).is_dir():
        from verl_jobs.start import check_start

        for frozen, lora in named if any(named[1]) else named[:1]:
            check_start(Path(profile.base), tokens=tokens, frozen=frozen, lora=lora)
    elif profile.base.startswith(("/", ".", "~")):
        raise NotReady(f"base: no folder {profile.base}: give a Hugging Face folder, or a hub id such as Qwen/Qwen2.5-Coder-0.5B-Instruct")
    elif not profile.base and ledger_of(home).champion() is None:
        if tokens > profile.tiny_model.positions:
            raise NotReady(
                f"tiny_model.positions is {profile.tiny_model.positions}, prompt and answer take {tokens}: give the model more, or lower "
                "training.prompt_tokens or training.answer_tokens"
            )
        if any(map(any, named)):
            from verl_jobs.start import check_names
            from verl_jobs.tiny_model import shapes

            for frozen, lora in named:
                check_names("the tiny model", shapes(profile.tiny_model), frozen, lora)
