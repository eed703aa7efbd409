"""Print Kubernetes manifests with the traffic of a release's step (`ratchet release manifests`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from cli.app.options import ProfileOption
from resources.home import NotReady
from resources.registry.releases import NoRelease, Releases
from resources.registry.versions import find
from resources.settings import Settings

if TYPE_CHECKING:
    from serving.release.manifests import ClusterNames

Kind = Literal["gateway-api", "kserve", "argo"]


def manifest(kind: Kind, names: ClusterNames, settings: Settings) -> str:
    """Return the manifest of the newest release as YAML. Raises NoRelease, NotReady."""
    import yaml

    from serving.release.manifests import analysis_template, http_route, inference_service

    if not (releases := Releases(settings.ledger.place).all()):
        raise NoRelease("no release yet: `ratchet deploy VERSION` opens one")
    release = releases[-1]
    if kind != "argo" and (many := len(release.challengers)) > 1:
        raise NotReady(
            f"{release.id} has {many} challengers, and only the gateway itself splits between more "
            "than two versions"
        )
    if kind == "argo":
        document = analysis_template(release, names)
    elif kind == "kserve":
        entry = find(settings.history, str(release.challenger))[-1]
        document = inference_service(release, names, entry.checkpoint)
    elif header := settings.profile.serving.version_header:
        document = http_route(release, names, header)
    else:
        raise NotReady(
            "serving.version_header is empty, so the gateway would split the traffic itself: set "
            "it in the profile, for example to x-ratchet-version"
        )
    return str(yaml.safe_dump(document, sort_keys=False))


def command(
    kind: Annotated[Kind, typer.Argument(help="Kind of the manifest.")],
    name: Annotated[str, typer.Option(help="Name of the object and of the service.")] = "ratchet",
    gateway: Annotated[str, typer.Option(help="Gateway of the route (gateway-api).")] = "ratchet",
    storage: Annotated[
        str, typer.Option(help="URI of the folder with the checkpoints (kserve).")
    ] = "pvc://ratchet",
    profile: ProfileOption = None,
) -> None:
    """Print a Kubernetes manifest with the traffic of the newest release's present step."""
    from serving.release.manifests import ClusterNames

    settings = Settings.read(profile)
    kubernetes = settings.profile.orchestration.kubernetes
    namespace = kubernetes.namespace if kubernetes else "ratchet"
    names = ClusterNames(name, namespace, gateway, storage=storage)
    print(manifest(kind, names, settings), end="")
