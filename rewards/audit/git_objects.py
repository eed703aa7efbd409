"""Read all objects of a Git store, packed and loose, reachable or not.

Git itself is not started: a store that nobody trusts can make it run programs. In: the files of a
`.git` folder or of a bare repository. Out: the contents of blobs, commits and tags.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Iterator, Mapping

KINDS = {1: "commit", 2: "tree", 3: "blob", 4: "tag"}
OFFSET_DELTA, REFERENCE_DELTA = 6, 7
MAX_OBJECT, MAX_TOTAL = 8 << 20, 128 << 20  # bytes after decompression
Object = tuple[str, bytes]  # kind, content


class Unreadable(ValueError):
    """A store is broken, or over the bounds."""


def stores(files: Mapping[str, bytes]) -> Iterator[str]:
    """Yield the folders among these files that are Git stores, by their path with `/`."""
    for path in files:
        if (
            path.endswith("HEAD")
            and path.rpartition("/")[2] == "HEAD"
            and "/logs/" not in f"/{path}"
        ):
            folder = path[: -len("HEAD")]
            if any(each.startswith(f"{folder}objects/") for each in files):
                yield folder


def objects(files: Mapping[str, bytes], folder: str) -> Iterator[Object]:
    """Yield every object of the store in a folder. Raises Unreadable."""
    room = MAX_TOTAL
    for path, data in files.items():
        if not path.startswith(f"{folder}objects/"):
            continue
        found = _pack(data) if path.endswith(".pack") else _loose(path, folder, data)
        for kind, content in found:
            room -= len(content)
            if room < 0:
                raise Unreadable(f"more than {MAX_TOTAL} bytes of objects")
            yield kind, content


def _loose(path: str, folder: str, data: bytes) -> Iterator[Object]:
    parts = path[len(folder) :].split("/")
    if len(parts) == 3 and len(parts[1]) == 2 and len(parts[2]) in (38, 62):
        head, _, content = _inflated(data, 0)[0].partition(b"\0")
        yield head.partition(b" ")[0].decode("ascii", "replace"), content


def _inflated(data: bytes, at: int) -> tuple[bytes, int]:
    """Return decompressed bytes and where the compressed ones end."""
    stream = zlib.decompressobj()
    try:
        content = stream.decompress(memoryview(data)[at:], MAX_OBJECT)
    except zlib.error as error:
        raise Unreadable(f"a broken object: {error}") from error
    if stream.unconsumed_tail or not stream.eof:
        raise Unreadable(f"an object is broken, or over {MAX_OBJECT} bytes")
    return content, len(data) - len(stream.unused_data)


def _pack(data: bytes) -> Iterator[Object]:
    """Yield the objects of a pack, with deltas applied."""
    if data[:4] != b"PACK" or len(data) < 32:
        raise Unreadable("a broken pack")
    by_place: dict[int, Object] = {}
    by_hash: dict[bytes, Object] = {}
    waiting: list[tuple[int, bytes, bytes]] = []
    at, total = 12, 0
    try:
        for _ in range(struct.unpack(">I", data[8:12])[0]):
            place, kind = at, data[at] >> 4 & 7
            while data[at] & 0x80:
                at += 1
            at += 1
            base: Object | None = None
            if kind == OFFSET_DELTA:
                distance, at = _offset(data, at)
                base = by_place.get(place - distance)
            elif kind == REFERENCE_DELTA:
                name, at = data[at : at + 20], at + 20
                base = by_hash.get(name)
            content, at = _inflated(data, at)
            if kind == REFERENCE_DELTA and base is None:
                waiting.append((place, name, content))
                continue
            result = _result(kind, content, base)
            total += len(result[1])
            if total > MAX_TOTAL:
                raise Unreadable(f"more than {MAX_TOTAL} bytes of objects")
            by_place[place] = by_hash[_name(result)] = result
        for place, name, content in waiting:
            if name in by_hash:  # else its base is in another pack: a thin pack
                by_place[place] = _result(REFERENCE_DELTA, content, by_hash[name])
    except (IndexError, struct.error) as error:
        raise Unreadable("a pack ends early") from error
    yield from by_place.values()


def _result(kind: int, content: bytes, base: Object | None) -> Object:
    if kind in KINDS:
        return KINDS[kind], content
    if base is None:
        raise Unreadable("a delta without its base")
    return base[0], _applied(base[1], content)


def _name(one: Object) -> bytes:
    kind, content = one
    header = f"{kind} {len(content)}\0".encode()
    return hashlib.sha1(header + content, usedforsecurity=False).digest()


def _offset(data: bytes, at: int) -> tuple[int, int]:
    value = data[at] & 0x7F
    while data[at] & 0x80:
        at += 1
        value = ((value + 1) << 7) | (data[at] & 0x7F)
    return value, at + 1


def _size(delta: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = delta[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return value, at


def _applied(base: bytes, delta: bytes) -> bytes:
    """Return the object that a delta makes of its base. Raises IndexError for a broken one."""
    _, at = _size(delta, 0)
    size, at = _size(delta, at)
    if size > MAX_OBJECT:
        raise Unreadable(f"an object of over {MAX_OBJECT} bytes")
    out = bytearray()
    while at < len(delta) and len(out) <= size:
        code, at = delta[at], at + 1
        if code & 0x80:
            values = []
            for bit in range(7):
                values.append(delta[at] if code >> bit & 1 else 0)
                at += code >> bit & 1
            start = int.from_bytes(bytes(values[:4]), "little")
            length = int.from_bytes(bytes(values[4:]), "little") or 0x10000
            out += base[start : start + length]
        else:
            out += delta[at : at + code]
            at += code
    return bytes(out)
