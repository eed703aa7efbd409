"""A pod of the chart as containers of Docker, with what Kubernetes would give each of them.

User, capabilities, seccomp, read-only root, memory, mounts and environment are the template's. The
containers share a network that has a loopback interface alone. KubeRay and dagster-k8s add the
commands of their pods; here the caller does.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any
from uuid import uuid4

from tests.deploy.chart import pods_of


def docker(*arguments: str, check: bool = True, timeout_s: float = 600.0) -> str:
    """Return a command's output. Raises AssertionError with its errors if it fails."""
    done = subprocess.run(
        ["docker", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout_s,
    )
    assert done.returncode == 0 or not check, f"docker {' '.join(arguments)}:\n{done.stdout}"
    return done.stdout


def volume(image: str) -> str:
    """Return a new volume that the image's user may write, as fsGroup makes it."""
    name = f"ratchet-{uuid4().hex[:8]}"
    docker("volume", "create", name)
    docker("run", "--rm", "--network=none", "--user=0", f"--volume={name}:/volume", image,
           "chown", "10001:10001", "/volume")  # fmt: skip
    return name


class Pod:
    """A pod from its template, with the volume of the home. folder: for files of its config maps.
    network: of the first container, as Docker names it.
    """

    def __init__(
        self, template: dict[str, Any], objects: list[dict[str, Any]], home: str, folder: Path,
        network: str = "none",
    ) -> None:  # fmt: skip
        self.spec, self.home, self.folder = template["spec"], home, folder
        self.network = network
        self.data = {
            each["metadata"]["name"]: each["data"]
            for each in objects
            if each["kind"] == "ConfigMap"
        }
        self.containers = {each["name"]: each for each in self.spec["containers"]}
        self.volumes = {each["name"]: each for each in self.spec["volumes"]}
        self.scratch: dict[str, str] = {}
        self.running: dict[str, str] = {}

    def __enter__(self) -> Pod:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        for name, number in self.running.items():
            if kind:
                print(f"{name}:\n{docker('logs', '--tail=60', number, check=False)}")
        docker("rm", "--force", *self.running.values(), check=False)
        docker("volume", "rm", *self.scratch.values(), check=False)

    def start(self, name: str, *command: str) -> str:
        """Start a container, by default with the command of its template; return its id."""
        container = self.containers[name]
        network = next((f"container:{other}" for other in self.running.values()), self.network)
        words = command or tuple(container["command"])
        self.running[name] = docker(
            "run", "--detach", f"--network={network}", *self._flags(container),
            "--entrypoint", words[0], container["image"], *words[1:],
        ).strip()  # fmt: skip
        return self.running[name]

    def execute(self, name: str, *command: str, timeout_s: float = 600.0) -> str:
        """Run a command in a container that was started; return its output."""
        return docker("exec", self.running[name], *command, timeout_s=timeout_s)

    def _flags(self, container: dict[str, Any]) -> list[str]:
        security = self.spec["securityContext"] | container["securityContext"]
        assert security["allowPrivilegeEscalation"] is False
        seccomp = security["seccompProfile"]
        memory = container.get("resources", {}).get("limits", {}).get("memory", "")
        return [
            f"--user={security['runAsUser']}:{security['runAsGroup']}",
            *(f"--cap-drop={name}" for name in security["capabilities"]["drop"]),
            "--security-opt=no-new-privileges",
            *(f"--security-opt=seccomp={seccomp[key]}" for key in seccomp if key != "type"),
            *(["--read-only"] if security["readOnlyRootFilesystem"] else []),
            *([f"--memory={memory.removesuffix('i').lower()}"] if memory else []),
            *(flag for mount in container["volumeMounts"] for flag in self._mount(mount)),
            *(f"--env={name}={value}" for name, value in self._environment(container).items()),
        ]

    def _environment(self, container: dict[str, Any]) -> dict[str, str]:
        variables = {each["name"]: each["value"] for each in container.get("env", ())}
        for source in container["envFrom"]:
            if "configMapRef" in source:
                variables |= self.data[source["configMapRef"]["name"]]
        return variables

    def _mount(self, mount: dict[str, str]) -> list[str]:
        volume_, path = self.volumes[mount["name"]], mount["mountPath"]
        if "configMap" in volume_:
            file = self.folder / volume_["configMap"]["name"] / mount["subPath"]
            file.parent.mkdir(exist_ok=True)
            file.write_text(self.data[file.parent.name][file.name], encoding="utf-8")
            return [f"--volume={file}:{path}:ro"]
        if "persistentVolumeClaim" in volume_:
            return [f"--volume={self.home}:{path}"]
        if path == "/dev/shm":
            return [f"--shm-size={volume_['emptyDir']['sizeLimit'].removesuffix('i').lower()}"]
        if mount["name"] not in self.scratch:
            image = next(iter(self.containers.values()))["image"]
            self.scratch[mount["name"]] = volume(image)
        return [f"--volume={self.scratch[mount['name']]}:{path}"]


def probe(pod: Pod, name: str, kind: str) -> str:
    """Make a container's probe as the kubelet would; return its output. Raises AssertionError."""
    container = pod.containers[name]
    check = container[kind]
    if "exec" in check:
        return pod.execute(name, *check["exec"]["command"])
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    url = f"http://127.0.0.1:{ports[check['httpGet']['port']]}{check['httpGet']['path']}"
    script = f"import urllib.request as r; print(r.urlopen({json.dumps(url)}).read())"
    return pod.execute(name, "python", "-c", script)


def templates(objects: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the pod templates of objects by name."""
    return dict(pod for each in objects for pod in pods_of(each))
