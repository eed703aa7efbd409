"""What a Dockerfile puts into an image, read from its text."""

from __future__ import annotations

import fnmatch
import posixpath
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

PLAIN = re.compile(r"^(\S*/)?(python|ubuntu|debian|ubuntu-24-04|python-3-13)([:@]\S+)?$")
HEREDOC = re.compile(r"<<-?\s*[\"']?(\w+)[\"']?")
KNOWN = {
    "ADD", "ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "HEALTHCHECK", "LABEL",
    "MAINTAINER", "ONBUILD", "RUN", "SHELL", "STOPSIGNAL", "USER", "VOLUME", "WORKDIR",
}  # fmt: skip
INSTALLS = re.compile(
    r"(?:apt-get|apt|apk|dnf|yum|pip3?|uv pip|uv tool|npm|conda|cargo|gem|go)\s+"
    r"(?:-\S+\s+)*(?:install|add)\s+([^;&|\n]*)"
)
PACKAGE = re.compile(r"^[A-Za-z][\w.+-]*")


@dataclass
class Image:
    """base: the last FROM. files: path in the image -> content, of what the context gives it.
    copies: sources of COPY and ADD as written. absent: those that the context lacks. unknown: words
    that begin a line and are no instruction. clones: whether a repository is cloned.
    """

    base: str = ""
    workdir: str = "/"
    files: dict[str, bytes] = field(default_factory=dict)
    copies: list[str] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    runs: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def clones(self) -> bool:
        text = "\n".join(self.runs)
        return "git clone" in text and not re.search(r"rm -r?f\w* \S*\.git\b|--depth", text)

    @property
    def plain(self) -> bool:
        return bool(PLAIN.match(self.base))


def read_image(text: str, context: Mapping[str, bytes]) -> Image:
    """Return the image of a Dockerfile. It is that of the last stage."""
    image, stages, unknown = Image(), dict[str, Image](), list[str]()
    ignored = context.get(".dockerignore", b"").decode("utf-8", "replace").split()
    shown = {path: data for path, data in context.items() if not _ignored(path, ignored)}
    for word, rest in _instructions(text):
        if word == "FROM":
            words = [part for part in rest.split() if part[:2] != "--"] or [""]
            image = Image(base=words[0])
            stages |= {words[-1]: image, str(len(set(map(id, stages.values())))): image}
        elif word == "WORKDIR":
            image.workdir = posixpath.normpath(posixpath.join(image.workdir, rest.strip("\"' ")))
        elif word == "ENV" and (pair := re.match(r"(\w+)[= ](.*)", rest)):
            image.environment[pair[1]] = pair[2].strip("\"' ")
        elif word == "RUN":
            image.runs.append(rest)
        elif word in ("COPY", "ADD"):
            _copy(image, rest, shown, stages)
        elif word not in KNOWN:
            unknown.append(word)
    image.unknown = unknown
    return image


def _ignored(path: str, patterns: list[str]) -> bool:
    folders = path.split("/")
    heads = ["/".join(folders[:end]) for end in range(1, len(folders) + 1)]
    plain = [each.strip("/") for each in patterns if each[:1] not in ("#", "!")]
    return any(fnmatch.fnmatch(head, each) for head in heads for each in plain)


def _instructions(text: str) -> list[tuple[str, str]]:
    """Return each instruction with its text; continued lines and heredocs belong to it."""
    found: list[tuple[str, str]] = []
    lines = iter(text.splitlines())
    for line in lines:
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        while line.rstrip().endswith("\\"):
            following = next(lines, "")
            if not following.lstrip().startswith("#"):
                line = f"{line.rstrip()}\n{following}" if following.strip() else line.rstrip()[:-1]
        whole = [line]
        if end := HEREDOC.search(line):
            for inner in lines:
                whole.append(inner)
                if inner.strip() == end[1]:
                    break
        word, _, rest = "\n".join(whole).strip().partition(" ")
        joined = rest.strip() if word.upper() == "RUN" else rest.replace("\\\n", " ").strip()
        found.append((word.upper(), joined))
    return found


def _copy(
    image: Image, rest: str, context: Mapping[str, bytes], stages: Mapping[str, Image]
) -> None:
    try:
        parts = shlex.split(rest.strip("[]").replace('",', '" ') if rest[:1] == "[" else rest)
    except ValueError:
        return
    stage = next((part.partition("=")[2] for part in parts if part.startswith("--from=")), None)
    if stage is not None:
        files = stages[stage].files if stage in stages else {}
        context = {path.lstrip("/"): data for path, data in files.items()}
    parts = [part for part in parts if not part.startswith("--")]
    if len(parts) < 2 or "<<" in rest:
        return
    *sources, target = parts
    image.copies += sources if stage is None else []
    place = posixpath.normpath(posixpath.join(image.workdir, target))
    folder = target.endswith(("/", ".")) or len(sources) > 1
    for source in sources:
        name = posixpath.normpath(source.lstrip("/")) if source.strip("./") else ""
        copied = dict[str, bytes]()
        for path, data in context.items():
            if not name or path.startswith(f"{name}/"):
                inner = path[len(name) + 1 :] if name else path
                copied[posixpath.join(place, inner)] = data
            elif path == name or ("*" in name and fnmatch.fnmatch(path, name)):
                many = folder or "*" in name
                copied[posixpath.join(place, posixpath.basename(path)) if many else place] = data
        image.files |= copied
        if not copied and stage is None and not re.search(r"[$*?[]|://|@", source):
            image.absent.append(source)


def installed(text: str) -> set[str]:
    """Return the names of packages that a script installs, as far as its text tells."""
    joined = text.replace("\\\n", " ")
    names = {
        match[0].rstrip(".").lower()
        for listed in INSTALLS.findall(joined)
        for word in listed.split()
        if (match := PACKAGE.match(word))
    }
    return names | {each.lower() for each in re.findall(r"--with[ =]([A-Za-z][\w.-]*)", joined)}


def without_installs(text: str) -> str:
    return INSTALLS.sub("", text.replace("\\\n", " "))
