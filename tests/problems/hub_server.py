"""A hub of datasets over HTTP on 127.0.0.1, with the API calls of the hub's client libraries.

ROOT/owner/name/COMMIT/...    files of a commit (40 hexadecimal digits)
ROOT/owner/name/main          the newest commit
ROOT/owner/name/gated         only members may read the dataset
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit


def commit(root: Path, dataset: str, files: dict[str, bytes], gated: bool = False) -> str:
    """Write a commit of a dataset with exactly these files and return its name."""
    name = hashlib.sha1(
        json.dumps(
            [dataset, sorted((path, content.hex()) for path, content in files.items())]
        ).encode()
    ).hexdigest()
    for path, content in files.items():
        file = root / dataset / name / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    (root / dataset / "main").write_text(name, encoding="utf-8")
    if gated:
        (root / dataset / "gated").touch()
    return name


@contextmanager
def hub(root: Path) -> Iterator[str]:
    """Serve the hub within the block and yield its address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None: ...

        def do_HEAD(self) -> None:
            self._get()

        def do_GET(self) -> None:
            self._get()

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
            self._get(body.get("paths"))

        def _get(self, paths: list[str] | None = None) -> None:
            path = unquote(urlsplit(self.path).path)
            if match := re.fullmatch(
                r"/api/datasets/([^/]+/[^/]+)(?:/(revision|tree|paths-info)/([^/]+)(?:/(.*))?)?",
                path,
            ):
                dataset, verb, revision, under = match.groups()
                if folder := self._folder(dataset, revision):
                    if verb == "tree":
                        self._json(
                            [
                                self._entry(file, folder)
                                for file in sorted((folder / (under or "")).rglob("*"))
                            ]
                        )
                    elif verb == "paths-info":
                        self._json(
                            [
                                self._entry(folder / each, folder)
                                for each in paths or []
                                if (folder / each).exists()
                            ]
                        )
                    else:
                        names = [
                            {"rfilename": f.relative_to(folder).as_posix()}
                            for f in sorted(folder.rglob("*"))
                            if f.is_file()
                        ]
                        self._json(
                            {
                                "id": dataset,
                                "sha": folder.name,
                                "siblings": names,
                                "private": False,
                                "gated": False,
                                "tags": [],
                                "downloads": 0,
                            }
                        )
            elif match := re.fullmatch(r"/datasets/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
                dataset, revision, name = match.groups()
                if folder := self._folder(dataset, revision):
                    self._file(folder, folder / name)
            else:
                self._refuse(404, "", "no such page")

        def _folder(self, dataset: str, revision: str | None) -> Path | None:
            there = root / dataset
            if not there.is_dir():
                self._refuse(401, "RepoNotFound", "Repository not found")
            elif (there / "gated").exists():
                self._refuse(401, "GatedRepo", f"Access to dataset {dataset} is restricted")
            else:
                name = (
                    (there / "main").read_text(encoding="utf-8")
                    if revision in (None, "main")
                    else str(revision)
                )
                if (there / name).is_dir():
                    return there / name
                self._refuse(404, "RevisionNotFound", f"Invalid rev id: {revision}")
            return None

        def _entry(self, file: Path, folder: Path) -> dict[str, Any]:
            path = file.relative_to(folder).as_posix()
            if file.is_dir():
                return {"type": "directory", "path": path, "oid": "0" * 40, "size": 0}
            return {
                "type": "file",
                "path": path,
                "oid": hashlib.sha1(file.read_bytes()).hexdigest(),
                "size": file.stat().st_size,
            }

        def _file(self, folder: Path, file: Path) -> None:
            if not file.is_file():
                self._refuse(
                    404, "EntryNotFound", "Entry not found", {"X-Repo-Commit": folder.name}
                )
                return
            content = file.read_bytes()
            self._send(
                200,
                content,
                {
                    "X-Repo-Commit": folder.name,
                    "ETag": f'"{hashlib.sha1(content).hexdigest()}"',
                    "Accept-Ranges": "bytes",
                },
            )

        def _json(self, value: Any) -> None:
            self._send(200, json.dumps(value).encode(), {"Content-Type": "application/json"})

        def _refuse(
            self, status: int, code: str, why: str, headers: dict[str, str] | None = None
        ) -> None:
            self._send(
                status,
                json.dumps({"error": why}).encode(),
                {"X-Error-Code": code, "X-Error-Message": why} | (headers or {}),
            )

        def _send(self, status: int, content: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            for key, value in (headers | {"Content-Length": str(len(content))}).items():
                self.send_header(key, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
