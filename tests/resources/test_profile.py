"""Every profile that is shipped loads; what cannot be meant is refused with its place and the nearest name."""

from __future__ import annotations

from pathlib import Path

import pytest

from resources.config.load import FOLDER, ProfileError, layers, load_profile, origin
from resources.config.profile import Profile
from resources.settings import Settings


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.yaml")), ids=lambda path: path.stem)
def test_a_shipped_profile_loads(path: Path) -> None:
    assert isinstance(load_profile(path.stem), Profile)


def test_the_embedded_profile_is_the_defaults() -> None:
    assert load_profile("embedded") == Profile()


def test_without_a_name_the_environment_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RATCHET_PROFILE", "small")
    assert Settings.read().profile == load_profile("small") != Profile()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("warm_up: {stepz: 3}", "warm_up.stepz: no such key, did you mean 'steps'"),
        ("sandbox: {worker: 3}", "sandbox.worker: no such key, did you mean 'workers'"),
        ("polisy: {alpha: 0.01}", "polisy: no such key, did you mean 'policy'"),
        (
            "reward: {weights: {corectness: 1}}",
            "reward.weights.corectness: no such key, did you mean 'correctness'",
        ),
        ("training: {learning_rate: fast}", "training.learning_rate: .*got 'fast'"),
        ("training: {steps: 7, save_every: 2}", "steps 7 is no multiple of save_every 2"),
        (
            "ray: {bind: localhost}",
            "ray.bind: .*listens on every interface for localhost: give 127.0.0.1",
        ),
        ("ray: {bind: 127.0.0.2}", "listens on every interface for 127.0.0.2"),
        ("orchestration: {launcher: kubernetes}", "needs a section `kubernetes`"),
        ("[1, 2]", "a profile is a mapping of sections, this is a list"),
        ("a: [", "not YAML"),
    ],
)
def test_a_bad_profile_is_refused_with_file_key_and_mend(
    tmp_path: Path, text: str, said: str
) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ProfileError, match=said) as caught:
        load_profile(str(path))
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_an_unknown_name_gets_the_nearest_one() -> None:
    with pytest.raises(ProfileError, match="did you mean small"):
        load_profile("smal")


def test_changes_go_over_the_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RATCHET_SET", "training.algorithm=rloo\nreward.weights.style=0.5\nseed=7")
    small = Settings.read("small").profile
    assert (small.training.algorithm, small.reward.weights.style, small.seed) == ("rloo", 0.5, 7)
    assert small.training.steps == 8  # of the profile


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("training.algorithm=gropo", "no 'gropo', did you mean grpo"),
        (
            "training.step=3",
            "--set training.step=3: training.step: no such key, did you mean 'steps'",
        ),
        ("training", "changes nothing: write section.key=value"),
        ("seed.x=1\nseed.x.y=2", "x is no section"),
    ],
)
def test_a_bad_change_is_refused_with_its_words(
    monkeypatch: pytest.MonkeyPatch, change: str, said: str
) -> None:
    monkeypatch.setenv("RATCHET_SET", change)
    with pytest.raises(ProfileError, match=said):
        _ = Settings.read("small").profile


def test_the_policy_may_be_a_file_beside_the_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "strict.yaml").write_text(
        "alpha: 0.001\nmargins: {mbpp: 0.02}\nlimits: {hack_gap: 0.1}", encoding="utf-8"
    )
    (tmp_path / "mine.yaml").write_text("policy: strict.yaml", encoding="utf-8")
    monkeypatch.setenv("RATCHET_SET", "policy.k=2")
    policy = Settings.read(str(tmp_path / "mine.yaml")).profile.policy
    assert (policy.alpha, policy.margins, policy.limits, policy.k) == (
        0.001,
        {"mbpp": 0.02},
        {"hack_gap": 0.1},
        2,
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "cannot be read.*beside the profile"),
        ("[1]", "a policy is a mapping of keys"),
        ("a: [", "not YAML"),
        ("alfa: 0.1", "policy.alfa: no such key, did you mean 'alpha'"),
        ("limits: {hackgap: 1}", "policy.limits.hackgap.*did you mean hack_gap"),
        ("margins: {mbpp: 3}", "margins.mbpp: 3.0 is no share"),
    ],
)
def test_a_bad_policy_file_is_refused_with_its_place(
    tmp_path: Path, text: str | None, said: str
) -> None:
    if text is not None:
        (tmp_path / "strict.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "mine.yaml").write_text("policy: strict.yaml", encoding="utf-8")
    with pytest.raises(ProfileError, match=said):
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
    found = layers(str(tmp_path / "mine.yaml"), ["seed=7"])
    profile = Settings.read(str(tmp_path / "mine.yaml")).profile
    assert (profile.training.steps, profile.training.group_size, profile.seed) == (6, 2, 7)
    assert profile.training.save_every == load_profile("small").training.save_every
    assert origin(found, ("training", "steps")).endswith("mine.yaml")
    assert origin(found, ("training", "group_size")).endswith("base.yaml")
    assert origin(found, ("training", "save_every")).endswith("small.yaml")
    assert origin(found, ("seed",)) == "--set seed=7"
    assert origin(found, ("training", "algorithm")) == "default"


def test_a_change_replaces_a_table_and_an_error_names_its_layer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.yaml").write_text("policy: {margins: {mbpp: 0.02}}", encoding="utf-8")
    monkeypatch.setenv("RATCHET_SET", "policy.margins={humaneval: 0.03}")
    assert Settings.read(str(tmp_path / "mine.yaml")).profile.policy.margins == {"humaneval": 0.03}
    monkeypatch.setenv("RATCHET_SET", "training.steps=-1\nseed=3")
    with pytest.raises(ProfileError, match=r"--set training.steps=-1: training.steps: .*got '-1'"):
        _ = Settings.read(str(tmp_path / "mine.yaml")).profile


def test_profiles_that_extend_each_other_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("extends: b.yaml", encoding="utf-8")
    (tmp_path / "b.yaml").write_text("extends: a.yaml", encoding="utf-8")
    with pytest.raises(ProfileError, match="a circle of 2 profiles"):
        load_profile(str(tmp_path / "a.yaml"))
