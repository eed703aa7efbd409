"""The Kubernetes manifests are valid. They are checked offline, without a cluster."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from resources.config.load import load_profile
from tests.test_architecture import PACKAGES, ROOT

FOLDER = ROOT / "deploy" / "kubernetes"
RELEASES = ("1.31", "1.37")  # the oldest and the newest supported release
# specs of KubeRay's kinds; pods inside them are validated as pods
KUBERAY = json.loads((ROOT / "tests" / "deploy" / "kuberay-1.7.json").read_text(encoding="utf-8"))


def documents() -> list[tuple[str, dict[str, Any]]]:
    files = sorted(FOLDER.glob("*.yaml"))
    documents = [
        (path, document)
        for path in files
        for document in yaml.safe_load_all(path.read_text(encoding="utf-8"))
        if document
    ]
    return [
        (f"{path.name}:{document['kind']}/{document['metadata']['name']}", document)
        for path, document in documents
    ]


ALL = documents()
STOCK = [
    (name, document) for name, document in ALL if not document["apiVersion"].startswith("ray.io/")
]
CUSTOM = [
    (name, document) for name, document in ALL if document["apiVersion"].startswith("ray.io/")
]


def groups(cluster: dict[str, Any]) -> list[dict[str, Any]]:
    return [cluster["spec"]["headGroupSpec"], *cluster["spec"]["workerGroupSpecs"]]


def containers() -> list[dict[str, Any]]:
    deployment = next(document for _, document in STOCK if document["kind"] == "Deployment")
    cluster = next(document for _, document in CUSTOM if document["kind"] == "RayCluster")
    specs = [
        deployment["spec"]["template"]["spec"],
        *(group["template"]["spec"] for group in groups(cluster)),
    ]
    return [container for spec in specs for container in spec["containers"]]


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize(("name", "document"), STOCK, ids=[name for name, _ in STOCK])
def test_a_stock_kind_is_valid(name: str, document: dict[str, Any], release: str) -> None:
    kubernetes_validate.validate(document, release, strict=True)


@pytest.mark.parametrize(("name", "document"), CUSTOM, ids=[name for name, _ in CUSTOM])
def test_a_custom_kind_has_known_fields_and_valid_pods(name: str, document: dict[str, Any]) -> None:
    assert document["apiVersion"] == "ray.io/v1"
    jsonschema.Draft202012Validator(KUBERAY | {"$ref": f"#/{document['kind']}"}).validate(
        document["spec"]
    )
    for group in groups(document) if document["kind"] == "RayCluster" else []:
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, **group["template"]}
        kubernetes_validate.validate(pod, RELEASES[-1], strict=True)


def test_manifests_use_namespace_and_image_of_the_profile() -> None:
    kubernetes = load_profile("cluster").orchestration.kubernetes
    assert kubernetes is not None
    assert {
        document["metadata"].get("namespace", document["metadata"]["name"]) for _, document in ALL
    } == {kubernetes.namespace}
    assert {container["image"] for container in containers()} == {kubernetes.image}
    assert kubernetes.service_account in [
        document["metadata"]["name"]
        for _, document in STOCK
        if document["kind"] == "ServiceAccount"
    ]


def test_everything_that_pods_mount_and_read_exists() -> None:
    # the secret is created by hand, see docs/how-to/deploy.md
    names = {(document["kind"], document["metadata"]["name"]) for _, document in ALL} | {
        ("Secret", "ratchet-secrets")
    }
    for container in containers():
        for source in container["envFrom"]:
            expected = (
                ("ConfigMap", source["configMapRef"]["name"])
                if "configMapRef" in source
                else ("Secret", source["secretRef"]["name"])
            )
            assert expected in names


def test_ray_in_the_cluster_is_the_ray_of_the_lock() -> None:
    cluster = next(document for _, document in CUSTOM if document["kind"] == "RayCluster")
    assert f"\nray=={cluster['spec']['rayVersion']} " in (ROOT / "requirements.lock").read_text(
        encoding="utf-8"
    )


def test_dagster_accepts_its_settings() -> None:
    from dagster._config import Shape, validate_config
    from dagster._core.instance.config import dagster_instance_config_schema
    from dagster_k8s import K8sRunLauncher

    storage = pytest.importorskip(
        "dagster_postgres", reason="dagster-postgres is not installed: the lock has it"
    )
    settings = yaml.safe_load(
        next(document for name, document in STOCK if name.endswith("ConfigMap/ratchet-dagster"))[
            "data"
        ]["dagster.yaml"]
    )
    assert settings["run_launcher"]["class"] == K8sRunLauncher.__name__
    for schema, values in (
        (dagster_instance_config_schema(), settings),
        (K8sRunLauncher.config_type(), settings["run_launcher"]["config"]),
        (storage.DagsterPostgresStorage.config_type(), settings["storage"]["postgres"]),
    ):
        validated = validate_config(Shape(schema), values)  # type: ignore[no-untyped-call]
        assert validated.success, validated.errors


def test_run_pods_get_the_home_and_the_secrets() -> None:
    from dagster_k8s.container_context import K8sContainerContext

    code = next(container for container in containers() if container["name"] == "code")
    config = json.loads(
        next(
            variable["value"]
            for variable in code["env"]
            if variable["name"] == "DAGSTER_CONTAINER_CONTEXT"
        )
    )
    context = K8sContainerContext.create_from_config(config)
    spec, container = (
        context.run_k8s_config.pod_spec_config,
        context.run_k8s_config.container_config,
    )
    assert spec["volumes"][0]["persistent_volume_claim"]["claim_name"] == "ratchet-home"
    assert container["volume_mounts"][0]["mount_path"] == "/var/lib/ratchet"
    assert {
        source.get("secret_ref", source.get("config_map_ref"))["name"]
        for source in container["env_from"]
    } == {
        "ratchet-environment",
        "ratchet-secrets",
    }


def test_processes_listen_only_inside_their_pod() -> None:
    for container in containers():
        if "--host" in container.get("command", []):
            assert container["command"][container["command"].index("--host") + 1] == "127.0.0.1"


def test_the_image_contains_all_packages_from_existing_files() -> None:
    text = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
    copied = [
        source
        for line in re.findall(r"^COPY (.*)", text, re.MULTILINE)
        for source in line.split()[:-1]
    ]
    assert not [source for source in copied if not (ROOT / source).exists()]
    assert set(PACKAGES) <= set(copied)
    assert text.index("USER ratchet") < text.index("CMD")
    let_in = [
        line[1:]
        for line in Path(ROOT / "deploy" / "Dockerfile.dockerignore")
        .read_text(encoding="utf-8")
        .splitlines()
        if line.startswith("!")
    ]
    assert not [
        source for source in copied if not any(Path(source).match(pattern) for pattern in let_in)
    ]
