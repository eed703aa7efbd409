"""Every shipped profile loads; a bad one is refused with its key and the nearest name."""

from __future__ import annotations

from pathlib import Path

import pytest

from resources.config.load import FOLDER, ProfileError, layers, load_profile, origin
from resources.config.profile import Profile
from resources.settings import Settings
from verl_jobs.planner.fit import check_fit
from verl_jobs.planner.shapes import GPUS, shape_of


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.yaml")), ids=lambda path: path.stem)
def test_a_shipped_profile_loads(path: Path) -> None:
    assert isinstance(load_profile(path.stem), Profile)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.yaml")), ids=lambda path: path.stem)
def test_a_profile_for_gpus_fits_the_gpus_that_it_names(path: Path) -> None:
    profile = load_profile(path.stem)
    if profile.training.engine == "hf":
        assert not profile.needs.gpu
        return
    check_fit(shape_of(profile.base), GPUS[profile.needs.gpu], profile.training)
    assert not profile.ray.address or profile.ray.kuberay.gpus * profile.ray.kuberay.workers == (
        profile.training.ranks
    )


def test_the_embedded_profile_equals_the_defaults() -> None:
    assert load_profile("embedded") == Profile()


def test_without_a_name_the_environment_chooses_the_profile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RATCHET_PROFILE", "small")
    assert Settings.read().profile == load_profile("small") != Profile()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("warm_up: {stepz: 3}", r"warm_up\.stepz: .*'steps'"),
        ("sandbox: {worker: 3}", r"sandbox\.worker: .*'workers'"),
        ("polisy: {alpha: 0.01}", "polisy: .*'policy'"),
        ("reward: {weights: {corectness: 1}}", r"reward\.weights\.corectness: .*'correctness'"),
        ("training: {learning_rate: fast}", r"training\.learning_rate: .*'fast'"),
        ("training: {steps: 7, save_every: 2}", r"steps.*save_every.*\b2\b.*\b7\b"),
        ("training: {clip_high: 0.28, algorithm: gspo}", "gspo has its own clipping rule"),
        ("training: {validation: {n: 4}}", "4 greedy completions of a problem are equal"),
        (
            "training: {verl: [actor_rollout_ref.rollout.topp=0.9]}",
            r"'actor_rollout_ref\.rollout\.top_p'",
        ),
        (
            "training: {verl: [+actor_rollout_ref.rollot.x=1]}",
            r"'actor_rollout_ref\.rollot'.*nearest",
        ),
        ("training: {verl: [trainer.logger]}", "name=value, \\+name=value or ~name"),
        ("ray: {bind: localhost}", r"ray\.bind: .*localhost.*127\.0\.0\.1"),
        ("ray: {bind: 127.0.0.2}", r"127\.0\.0\.2"),
        ("orchestration: {launcher: kubernetes}", "`kubernetes`"),
        ("[1, 2]", "list"),
        ("a: [", "not YAML"),
        ("policy: {benchmark: mbpp+}", r"policy\.benchmark: mbpp\+.*evaluation\.benchmarks"),
        ("policy: {k: 5}", r"policy\.k: pass@5.*heldout has n 1"),
        ("evaluation: {benchmarks: [humanevall]}", "unknown benchmark 'humanevall'"),
        ("evaluation: {benchmarks: [mine.yaml]}", "mine.yaml"),
        ("evaluation: {benchmarks: [livecodebench]}", "window"),
        ("evaluation: {benchmarks: [mbpp, mbpp]}", "mbpp is named twice"),
        ("evaluation: {benchmarks: [{name: mbpp, n: 4}]}", "mbpp: 4 .*temperature"),
    ],
)
def test_a_bad_profile_is_refused_with_file_and_key(
    tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ProfileError, match=message) as caught:
        load_profile(str(path))
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_named_benchmark_can_gate_by_pass_at_k(tmp_path: Path) -> None:
    (tmp_path / "kitchen.yaml").write_text("name: kitchen\ndata: k.jsonl", encoding="utf-8")
    profile = tmp_path / "mine.yaml"
    entry = "{name: kitchen.yaml, n: 8, temperature: 0.8, prompt: upstream}"
    profile.write_text(
        f"policy: {{benchmark: kitchen, k: 5}}\nevaluation: {{benchmarks: [{entry}]}}",
        encoding="utf-8",
    )
    settings = load_profile(str(profile)).evaluation.settings_of("kitchen")
    assert settings is not None
    assert settings.name == str(tmp_path / "kitchen.yaml")
    assert (settings.n, settings.prompt) == (8, "upstream")


def test_an_unknown_benchmark_is_named_once_with_its_key(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("evaluation: {benchmarks: [humanevall]}", encoding="utf-8")
    with pytest.raises(ProfileError) as caught:
        load_profile(str(path))
    assert str(caught.value).startswith(f"{path}: evaluation.benchmarks: unknown benchmark 'human")


def test_an_unknown_profile_that_one_extends_is_named_with_its_file(tmp_path: Path) -> None:
    base, mine = tmp_path / "base.yaml", tmp_path / "mine.yaml"
    base.write_text("extends: smal", encoding="utf-8")
    mine.write_text("extends: base.yaml", encoding="utf-8")
    with pytest.raises(ProfileError, match="small") as caught:
        load_profile(str(mine))
    assert str(caught.value).startswith(f"{base}: extends: no profile 'smal'")


@pytest.mark.parametrize(
    "wrong",
    [
        "tuning: {space: {training.clip: {values: [1]}}}",
        "tuning: {space: {training: {clip: {values: [1]}}}}",
        "tuning: {space: {training: {clip: {uniform: [2, 1]}}}}",
        "policy: {benchmark: mbpp+}",
    ],
)
def test_a_wrong_value_is_named_with_the_file_that_sets_it(tmp_path: Path, wrong: str) -> None:
    base, mine = tmp_path / "base.yaml", tmp_path / "mine.yaml"
    base.write_text(wrong, encoding="utf-8")
    mine.write_text(
        "extends: base.yaml\ntuning: {space: {training.temperature: {choice: [0.9, 1.0]}}}",
        encoding="utf-8",
    )
    with pytest.raises(ProfileError) as caught:
        load_profile(str(mine))
    assert str(caught.value).startswith(f"{base}: ")


def test_changes_override_the_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RATCHET_SET", "training.algorithm=rloo\nreward.weights.style=0.5\nseed=7")
    small = Settings.read("small").profile
    assert (small.training.algorithm, small.reward.weights.style, small.seed) == ("rloo", 0.5, 7)
    assert small.training.steps == 8  # from small.yaml


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("training.algorithm=gropo", "'gropo'.*grpo"),
        ("training.step=3", r"--set training\.step=3: training\.step: .*'steps'"),
        ("training", r"section\.key=value"),
        ("seed.x=1\nseed.x.y=2", "x is not a section"),
    ],
)
def test_a_bad_change_is_refused_with_its_key(
    monkeypatch: pytest.MonkeyPatch, change: str, message: str
) -> None:
    monkeypatch.setenv("RATCHET_SET", change)
    with pytest.raises(ProfileError, match=message):
        _ = Settings.read("small").profile


def test_the_policy_may_be_a_file_next_to_the_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "strict.yaml").write_text(
        "alpha: 0.001\nmargins: {mbpp: 0.02}\nlimits: {hack_gap: 0.1}", encoding="utf-8"
    )
    heldout = "evaluation: {benchmarks: [{name: heldout, n: 2, temperature: 0.8}]}"
    (tmp_path / "mine.yaml").write_text(f"policy: strict.yaml\n{heldout}", encoding="utf-8")
    monkeypatch.setenv("RATCHET_SET", "policy.k=2")
    policy = Settings.read(str(tmp_path / "mine.yaml")).profile.policy
    assert (policy.alpha, policy.margins, policy.limits, policy.k) == (
        0.001,
        {"mbpp": 0.02},
        {"hack_gap": 0.1},
        2,
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, r"strict\.yaml"),
        ("[1]", "policy"),
        ("a: [", "not YAML"),
        ("alfa: 0.1", r"policy\.alfa: .*'alpha'"),
        ("limits: {hackgap: 1}", r"policy\.limits\.hackgap.*hack_gap"),
        ("margins: {mbpp: 3}", r"margins\.mbpp.*3\.0"),
    ],
)
def test_a_bad_policy_file_is_refused_with_its_key(
    tmp_path: Path, text: str | None, message: str
) -> None:
    if text is not None:
        (tmp_path / "strict.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "mine.yaml").write_text("policy: strict.yaml", encoding="utf-8")
    with pytest.raises(ProfileError, match=message):
        load_profile(str(tmp_path / "mine.yaml"))


def test_a_profile_extends_another_and_every_value_has_a_layer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "base.yaml").write_text(
        "extends: small\ntraining: {steps: 5, group_size: 2}", encoding="utf-8"
    )
    (tmp_path / "mine.yaml").write_text(
        "extends: base.yaml\ntraining: {steps: 6}", encoding="utf-8"
    )
    monkeypatch.setenv("RATCHET_SET", "seed=7")
    profile_layers = layers(str(tmp_path / "mine.yaml"), ["seed=7"])
    profile = Settings.read(str(tmp_path / "mine.yaml")).profile
    assert (profile.training.steps, profile.training.group_size, profile.seed) == (6, 2, 7)
    assert profile.training.save_every == load_profile("small").training.save_every
    assert origin(profile_layers, ("training", "steps")).endswith("mine.yaml")
    assert origin(profile_layers, ("training", "group_size")).endswith("base.yaml")
    assert origin(profile_layers, ("training", "save_every")).endswith("small.yaml")
    assert origin(profile_layers, ("seed",)) == "--set seed=7"
    assert origin(profile_layers, ("training", "algorithm")) == "default"


def test_a_change_of_a_table_replaces_it_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.yaml").write_text("policy: {margins: {mbpp: 0.02}}", encoding="utf-8")
    monkeypatch.setenv("RATCHET_SET", "policy.margins={humaneval: 0.03}")
    assert Settings.read(str(tmp_path / "mine.yaml")).profile.policy.margins == {"humaneval": 0.03}
    monkeypatch.setenv("RATCHET_SET", "training.steps=-1\nseed=3")
    with pytest.raises(ProfileError, match=r"--set training\.steps=-1: .*'-1'"):
        _ = Settings.read(str(tmp_path / "mine.yaml")).profile


def test_profiles_that_extend_each_other_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("extends: b.yaml", encoding="utf-8")
    (tmp_path / "b.yaml").write_text("extends: a.yaml", encoding="utf-8")
    with pytest.raises(ProfileError, match="2 profiles"):
        load_profile(str(tmp_path / "a.yaml"))


@pytest.mark.parametrize(
    ("changes", "shipped"),
    [
        ([], ("embedded", "simple")),
        (["base=org/model"], ()),
        (["base=org/model", "shipped_problems=[everyday]"], ("everyday",)),
        (["shipped_problems=[]"], ()),
    ],
)
def test_a_base_reads_only_shipped_problems_that_are_named(
    changes: list[str], shipped: tuple[str, ...]
) -> None:
    assert load_profile("embedded", changes).shipped == shipped
