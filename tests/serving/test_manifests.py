"""Traffic that a proxy splits: manifests of a release's step, and the analysis for Argo."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from cli.display.manifests import manifest
from resources.config.release import ReleaseSettings
from resources.home import Home, NotReady
from resources.registry.ledger import Ledger
from resources.registry.releases import Releases
from resources.settings import Settings
from serving.gateway.observations import Observations
from serving.release.manifests import (
    ClusterNames,
    analysis_template,
    http_route,
    inference_service,
    shares_of,
)
from tests.serving.gateway_server import ask, call, eventually, fast, promote, running
from tests.serving.traffic import Site, open_release

CRDS = json.loads((Path(__file__).parent / "traffic_crds.json").read_text(encoding="utf-8"))
HEADER = "x-ratchet-version"


def check(document: dict[str, Any]) -> None:
    jsonschema.Draft202012Validator(CRDS[document["kind"]]).validate(document["spec"])


def weights(route: dict[str, Any]) -> dict[str, int]:
    backends = route["spec"]["rules"][0]["backendRefs"]
    named = {b["filters"][0]["requestHeaderModifier"]["set"][0]["value"]: b for b in backends}
    return {version: backend["weight"] for version, backend in named.items()}


def test_the_schemas_refuse_unknown_fields_and_wrong_types(site: Site) -> None:
    route = http_route(site.open(), ClusterNames(), HEADER)
    for change in ({"weights": 1}, {"weight": "1"}, {"weight": -1}, {"port": 0}):
        broken = json.loads(json.dumps(route))
        broken["spec"]["rules"][0]["backendRefs"][0] |= change
        with pytest.raises(jsonschema.ValidationError):
            check(broken)


def test_every_manifest_is_valid_at_every_step_and_follows_the_record(site: Site) -> None:
    release, seen, kserve = site.open(), [], []
    for _ in range(4):
        for document in (
            http_route(release, ClusterNames(), HEADER),
            inference_service(release, ClusterNames(), "chain-0002"),
            analysis_template(release, ClusterNames()),
        ):
            check(document)
        seen.append(weights(http_route(release, ClusterNames(), HEADER)))
        service = inference_service(release, ClusterNames(), "chain-0002")
        kserve.append(service["spec"]["predictor"].get("canaryTrafficPercent"))
        site.send(200)
        site.tick()
        release = site.last()
    assert seen == [{"1": 9000, "2": 1000}, {"1": 5000, "2": 5000}, {"1": 500, "2": 9500},
                    {"1": 0, "2": 10000}]  # fmt: skip
    assert kserve == [10, 50, 95, None]


def test_after_a_rollback_the_champion_gets_everything(site: Site) -> None:
    release = site.open("blue-green")
    site.releases.append(release.last, "rolled_back", {"reasons": ["a test"]})
    assert shares_of(site.last()) == {1: 1.0, 2: 0.0}
    service = inference_service(site.last(), ClusterNames(), "chain-0002")
    assert service["spec"]["predictor"]["canaryTrafficPercent"] == 0


def test_a_shadow_gets_no_part_of_the_traffic(site: Site) -> None:
    assert shares_of(site.open("shadow")) == {1: 1.0, 2: 0.0}


def test_the_command_prints_a_manifest_and_refuses_a_gateway_that_splits_too(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.open()
    monkeypatch.setenv("RATCHET_HOME", str(tmp_path))
    settings = Settings.read(changes=[f"serving.version_header={HEADER}"])
    route = yaml.safe_load(manifest("gateway-api", ClusterNames(), settings))
    check(route)
    assert weights(route) == {"1": 9000, "2": 1000}
    with pytest.raises(NotReady, match=r"serving\.version_header is empty"):
        manifest("gateway-api", ClusterNames(), Settings.read())


def test_a_proxy_splits_by_the_manifest_and_the_analysis_takes_it_back(
    home: Home, checkpoints: dict[str, Path]
) -> None:
    from serving.gateway.app import make_app
    from serving.release.attach import attached_router
    from serving.release.web_metric import analysis_routes
    from tests.serving.faulty_engine import Faulty

    ledger, releases = Ledger(home.ledger), Releases(home.ledger)
    for name in ("old", "new"):
        promote(home, name, checkpoints[name])
    plan = ReleaseSettings(shares=(0.4,), bake_s=600)
    release = open_release(ledger, releases, plan, 2)
    [(_, champion), (_, challenger)] = weights(http_route(release, ClusterNames(), HEADER)).items()
    assert (champion, challenger) == (6000, 4000)
    settings = fast(version_header=HEADER)
    app = make_app(
        home,
        settings,
        router_of=lambda catalog: attached_router(home, ledger, catalog),
        pages=[analysis_routes(home, ledger)],
        open_engine=Faulty(new={"fail"}),
    )
    split: Counter[int] = Counter()

    def send(url: str, number: int) -> None:
        place = int(hashlib.sha256(str(number).encode()).hexdigest(), 16) % 10_000
        version = 1 if place < champion else 2
        split[version] += 1
        body = {"messages": [{"role": "user", "content": "fail"}], "max_tokens": 2}
        request = json.dumps(body).encode()
        status, _ = call(f"{url}/v1/chat/completions", request, headers={HEADER: str(version)})
        assert status == 200

    with running(app, settings) as url:
        analysis = f"{url}/releases/latest/analysis"
        eventually(lambda: call(f"{url}/models")[1]["versions"][1]["loaded"])
        assert call(analysis)[1]["healthy"] is True
        for number in range(60):
            send(url, number)
        eventually(lambda: call(analysis)[1]["healthy"] is False)
        eventually(lambda: call(analysis)[1]["state"] == "rolled_back")
        assert call(analysis)[1]["shares"] == {"1": 1.0, "2": 0.0}
        eventually(lambda: ask(url)[1]["model"] == "old")
    rows = [row for _, row in Observations(home.observations).read() if row.release]
    arms = Counter(row.version for row in rows if row.arm != "fallback")
    assert arms[2]
    assert arms[1]
    assert abs(arms[2] - split[2]) <= split[2] // 2
    assert {row.share for row in rows if row.version == 2} == {0.4}
