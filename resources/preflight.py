"""Check before a pipeline run for errors that would otherwise appear only after its warm-up.

This covers its algorithm, its reward, the policy it starts from, the benchmark of its gate, the
disk space of its checkpoints, and MLflow's file. In: a profile and its home. Out: nothing, or
`NotReady` and `UnfitStart` with the key and the fix. A hub model that has not been downloaded is
checked later by `verl_jobs/planner/preflight.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from evaluation.benchmarks.embedded import NO_HELDOUT, own_heldout
from problems.catalogue import read_sources
from problems.columns import ProblemError
from problems.prompt import TURNS, prompt_messages
from problems.schema import Problem
from problems.sources.registry import SOURCES, read
from problems.stored import stored_problems
from problems.synthesis.settings import SOURCE as SYNTHETIC
from resources.capacity import shape_of_start
from resources.config.profile import HELDOUT, Profile
from resources.history import history_of
from resources.home import Home, NotReady
from resources.registry.ledger import Ledger, champion_of
from resources.registry.mlflow import Registry
from resources.run_record import next_id
from rewards.own import reward_of
from verl_jobs.config.agents import Agents
from verl_jobs.gguf.source import find, names_gguf
from verl_jobs.planner.lengths import tokenizer_of
from verl_jobs.planner.preflight import (
    CannotTrain,
    check_disk,
    check_lengths,
    check_roles,
    check_settings,
)
from verl_jobs.sft.start import UnfitStart


def check_sources(home: Home, profile: Profile) -> None:
    """Raise NotReady if the profile names a base, and no added source has problems for training."""
    if not profile.base or profile.dataset or profile.shipped:
        return
    if not read_sources(home.path):
        raise NotReady(
            f"no problems to train {profile.base} on: add some with `ratchet data add mine --path "
            "problems.jsonl` (your own), `ratchet data add taco` (a known dataset on the hub) or "
            "`ratchet data add everyday` (small tasks that come with Ratchet)"
        )
    if not trains(home):
        names = ", ".join(read_sources(home.path))
        raise NotReady(
            f"no problem of the sources may be trained on: those of {names} are for evaluation "
            "only, or cannot be read: add problems for training (`ratchet data sources` lists the "
            "known ones)"
        )


def _check_prompts(home: Home, profile: Profile) -> None:
    """Raise CannotTrain if too few prompts of the sources are within the token limit, where the
    sources and the base's tokenizer are on this machine.
    """
    base = profile.base
    if profile.dataset or profile.shipped or not _has_tokenizer(profile):
        return
    if not _elsewhere(home):
        chats = (prompt_messages(each) for each in _training(home))
        names = ", ".join(read_sources(home.path))
        check_lengths(chats, tokenizer_of(base), profile.training, f"the problems of {names}")


def _has_tokenizer(profile: Profile) -> bool:
    return bool(profile.base) and (names_gguf(profile.base) or Path(profile.base).is_dir())


def trains(home: Home) -> bool:
    """Return whether a source has a problem for training. A hub's dataset is taken to have one."""
    return _elsewhere(home) or any(True for _ in _training(home))


def _elsewhere(home: Home) -> bool:
    """Return whether a source is a dataset of the hub, which a run downloads."""
    return any(
        place.path is None and not (name in SOURCES and SOURCES[name].generate)
        for name, place in read_sources(home.path).items()
    )


def _training(home: Home) -> Iterator[Problem]:
    """Yield the problems of all sources that may be trained on."""
    for name, place in read_sources(home.path).items():
        for _, problem in read(name, place):
            if isinstance(problem, Problem) and problem.split == "train" and not problem.gated:
                yield problem


def check_parts(profile: Profile, problems: Sequence[Problem], key: str) -> None:
    """Check that a named base has problems to train on, to choose its checkpoint by and to gate on,
    and that its chat template, if it is on this machine, takes the chats.

    key: of the profile that the problems come from. Raises ProblemError and CannotTrain.
    """
    if not profile.base:
        return
    chats = [prompt_messages(each) for each in problems if TURNS in each.extra]
    if chats and _has_tokenizer(profile):
        check_roles(chats, tokenizer_of(profile.base), key)
    parts = {problem.split for problem in problems if not problem.gated}
    if "train" not in parts:
        raise ProblemError("no problem may be trained on", "add problems of the split `train`", key)
    if "validation" not in parts:
        raise ProblemError(
            "no problem has the split `validation`, which chooses the checkpoint",
            "give some rows that split, and build the dataset again",
            key,
        )
    if profile.policy.benchmark == HELDOUT and not own_heldout(problems):
        raise ProblemError(
            NO_HELDOUT,
            "add some, or set policy.benchmark to a published benchmark such as mbpp+",
            f"policy.benchmark: {HELDOUT}",
        )


def check_reward(home: Home, profile: Profile) -> None:
    """Check that the reward can train, and its tags if all problems have been read already.

    A run checks the tags as soon as it has read them. Raises RewardFileError and ProblemError.
    """
    reward_of(profile.reward)
    if not profile.reward.by:
        return
    raw = home.store(profile.storage.root).current("datasets", "raw_problems")
    sources = {name: place.content for name, place in read_sources(home.path).items()}
    family = profile.family.model_dump(mode="json") if profile.reads_family else {}
    if raw and raw.manifest.inputs == sources and family.items() <= raw.manifest.config.items():
        profile.reward.check_tags(stored_problems(raw.path), later=[SYNTHETIC])


def check_policy(home: Home, profile: Profile) -> None:
    """Check settings, sources, start policy, the gate's benchmark, disk space and MLflow's file.

    Raises NotReady, UnfitStart, and LedgerUnreachable if the ledger is elsewhere and does not
    respond.
    """
    if damage := Registry(home.path, profile.storage.mlflow).damage():
        raise NotReady(damage)  # a training writes its metrics there
    check_agents(profile.training.agents)
    try:
        check_settings(profile.training)
        if profile.base:
            check_base(home, profile)
        # With a champion, the pipeline run would continue from that, whatever its shape.
        ledger = Ledger(home.ledger)
        if champion_of(history_of(ledger, home.runs)) is None:
            if not profile.base:
                _check_tiny_model(profile)
            if shape := shape_of_start(profile):
                check_disk(home.runs / next_id(home.runs), profile.training, shape.parameters)
        check_sources(home, profile)
        _check_prompts(home, profile)
        _check_gate(home, profile)
    except CannotTrain as error:
        raise NotReady(str(error)) from None


def check_agents(agents: Agents) -> None:
    """Raise NotReady if no model that writes programs would be trained."""
    if agents.trains == "reviewer":
        raise NotReady(
            "training.agents.trains: reviewer trains no model that writes programs: run "
            "`ratchet reviewer reinforce` instead"
        )


def check_start_of(profile: Profile, folder: Path, *, warm_up: bool = True) -> None:
    """Check a start policy in a folder, for the training and for the warm-up before it.

    Raises UnfitStart.
    """
    from verl_jobs.sft.start import check_start

    training = profile.training
    tokens = training.prompt_tokens + training.response_tokens
    check_start(folder, tokens=tokens, frozen=training.frozen, lora=training.lora)
    if warm_up and (profile.warm_up.frozen or profile.warm_up.lora):
        check_start(folder, frozen=profile.warm_up.frozen, lora=profile.warm_up.lora)


def _check_gate(home: Home, profile: Profile) -> None:
    """Raise NotReady if the gate's benchmark cannot be measured: without it there is no decision.

    One that the hub may still provide is not downloaded here.
    """
    gate = profile.policy.benchmark
    settings = profile.evaluation.settings_of(gate)
    if gate == HELDOUT or profile.evaluation.hub or settings is None:
        return
    from evaluation.benchmarks.benchmark import NotMeasured
    from evaluation.benchmarks.registry import measured

    benchmark = measured(settings, home.path)
    if isinstance(benchmark, NotMeasured):
        raise NotReady(f"policy.benchmark: {gate} cannot gate: {benchmark.reason}")


def check_base(home: Home, profile: Profile) -> None:
    """Raise NotReady or UnfitStart if the profile's base cannot be trained, as far as this can be
    seen without a download.
    """
    base = profile.base
    if names_gguf(base):
        from verl_jobs.gguf.convert import check

        try:
            check(find(base))
        except UnfitStart as error:
            raise NotReady(f"profile key base: {error}") from None
        return None
    if Path(base).is_dir():
        return check_start_of(profile, Path(base))
    if not base.startswith(("/", ".", "~")):
        return None
    base_model = home.store(profile.storage.root).current("checkpoints", "base_model")
    if base_model is None or base_model.manifest.config != {"base": base}:
        raise NotReady(
            f"base: no folder {base}: give a Hugging Face folder, a hub id such as "
            "Qwen/Qwen2.5-Coder-0.5B-Instruct, or gguf:PATH"
        )


def _check_tiny_model(profile: Profile) -> None:
    training, positions = profile.training, profile.tiny_model.positions
    if (tokens := training.prompt_tokens + training.response_tokens) > positions:
        key = "agents.tokens" if training.agents.several else "answer_tokens"
        raise NotReady(
            f"tiny_model.positions is {positions}, prompt and response take {tokens}: raise it, or "
            f"lower training.prompt_tokens or training.{key}"
        )
    patterns = [(training.frozen, training.lora), (profile.warm_up.frozen, profile.warm_up.lora)]
    if any(map(any, patterns)):
        from verl_jobs.sft.start import check_names
        from verl_jobs.sft.tiny_model import shapes

        for frozen, lora in patterns:
            check_names("the tiny model", shapes(profile.tiny_model), frozen, lora)
