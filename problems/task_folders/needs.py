"""Whether the sandbox can run a task folder: it needs only Python and a shell."""

from __future__ import annotations

import re
from importlib.util import find_spec

from problems.task_folders.dockerfile import Image, installed, without_installs
from problems.task_folders.task_folder import TaskFolder, texts

PYTEST = ("pytest", "_pytest", "py", "pluggy", "iniconfig", "packaging", "pygments")
MAX_IMAGE = 8 << 20  # bytes
# What the sandbox has, or what only an installer or a person needs.
PRESENT = {
    "python3", "python", "python3-pip", "python3-venv", "python3-dev", "python-is-python3", "pip",
    "setuptools", "wheel", "uv", "curl", "wget", "git", "bash", "coreutils", "ca-certificates",
    "tmux", "asciinema", "vim", "nano", "less", "procps", "build-essential", "gnupg", "lsb-release",
    "findutils", "grep", "sed", "gawk", "diffutils", "tar", "gzip", "sudo", "locales", "tzdata",
    "software-properties-common", "apt-utils", "unzip", "file", "pytest-json-ctrf",
}  # fmt: skip
TOOLS = re.compile(r"(?:^|[\s;&|(])([a-z][\w.+-]*)", re.M)


def unrunnable(task: TaskFolder, image: Image) -> str:
    """Return why the sandbox cannot run a task; "" if it can."""
    if task.unrunnable or not task.test:
        return task.unrunnable or "it has no tests to start"
    if not image.plain:
        return f"its image must be built: it starts from {image.base or 'no known base'}"
    if sum(map(len, image.files.values())) > MAX_IMAGE:
        return f"its image copies over {MAX_IMAGE >> 20} MiB"
    scripts = "\n".join([*image.runs, task.tests_text, task.solution_text])
    used = without_installs(f"{scripts}\n{texts(image.files)}")
    words = set(re.findall(r"[a-z][\w+-]*", used.lower()))
    lacking = sorted(
        name
        for name in installed(scripts) - PRESENT - set(PYTEST)
        if {name, name.replace("-", "_"), *SPELLED.get(name, ())} & words and not find_spec_of(name)
    )
    if lacking:
        return f"its image must be built: it installs {', '.join(lacking)}"
    if image.clones:
        return "its image must be built: it clones a repository"
    return ""


SPELLED = {
    "scikit-learn": ("sklearn",),
    "pyyaml": ("yaml",),
    "pillow": ("pil",),
    "nodejs": ("node",),
}
IMPORTABLE = ("numpy", "sortedcontainers")  # in the sandbox


def find_spec_of(name: str) -> bool:
    return name in IMPORTABLE and find_spec(name) is not None
