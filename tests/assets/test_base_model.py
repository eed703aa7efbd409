"""A base model that cannot be had is said by its key in the profile."""

import pytest

from assets.base_model import snapshot
from resources.home import NotReady


@pytest.mark.parametrize("hub_id", ["ratchet-tests/there-is-no-such-model", "three/parts/are too many"])
def test_a_bad_hub_id_is_named_with_its_key_and_the_mend(hub_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")  # nobody listens: a hub that cannot be reached
    with pytest.raises(NotReady, match=r"profile key base: .*(check the id and the network, or name a local folder)") as raised:
        snapshot(hub_id, "profile key base")
    assert hub_id in str(raised.value) and "\n" not in str(raised.value)
