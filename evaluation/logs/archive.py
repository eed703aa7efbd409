"""Members of a zip file, with Zstandard too, which the zip module of Python 3.11 cannot read."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path

from evaluation.logs.log import LogError

ZSTANDARD = 93  # compression method, PKWARE APPNOTE 4.4.5
HEADER = 30  # bytes of a member's local header before its name; 4.3.7


class Archive:
    """Raises LogError for a file that is no whole zip file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with zipfile.ZipFile(path) as archive:
                self.members = {info.filename: info for info in archive.infolist()}
        except zipfile.BadZipFile as error:
            raise LogError(f"{path}: no whole log ({error}): copy it again") from error

    def read(self, name: str) -> bytes:
        """Return a member's content. Raises KeyError, and LogError for a damaged one."""
        info = self.members[name]
        try:
            if info.compress_type != ZSTANDARD:
                with zipfile.ZipFile(self.path) as archive:
                    return archive.read(name)
            content = self._zstandard(info)
        except (OSError, zipfile.BadZipFile, zlib.error) as error:
            raise LogError(f"{self.path}: {name} is damaged ({error}): copy it again") from error
        if zlib.crc32(content) != info.CRC:
            raise LogError(f"{self.path}: {name} is damaged (checksum): copy it again")
        return content

    def _zstandard(self, info: zipfile.ZipInfo) -> bytes:
        import pyarrow

        with self.path.open("rb") as file:
            file.seek(info.header_offset)
            header = file.read(HEADER)
            file.seek(sum(int.from_bytes(header[at : at + 2], "little") for at in (26, 28)), 1)
            compressed = file.read(info.compress_size)
        reader = pyarrow.BufferReader(compressed)
        with pyarrow.CompressedInputStream(reader, "zstd") as stream:
            return bytes(stream.read())
