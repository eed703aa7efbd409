"""Landlock: limits which files a process and its children may touch, without any privilege. For the
isolation level without a mount namespace.
"""

from __future__ import annotations

import ctypes
import os
import struct

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same on every architecture
_PATH_BENEATH = 1
_READ_FILE, _WRITE_FILE, _READ_DIR, _EXECUTE, _TRUNCATE = 1 << 2, 1 << 1, 1 << 3, 1 << 0, 1 << 14
_SCOPE_ABSTRACT_UNIX, _SCOPE_SIGNAL = 1, 2

_libc = ctypes.CDLL(None, use_errno=True)


def version() -> int:
    """Return the kernel's Landlock ABI, 0 if it has none."""
    return max(0, int(_libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), 1)))


def available() -> bool:
    return version() >= 1


def confines_signals() -> bool:
    """Whether `confine` also keeps signals from processes outside."""
    return version() >= 6


def ruleset(*, readable: list[str], devices: list[str], writable: str) -> int:
    """Return a descriptor of these rules: read below `readable`, read and write `devices`, anything
    below `writable`.

    TCP, abstract sockets and signals to processes outside are refused if the ABI supports it.
    Raises OSError if the kernel refuses.
    """
    abi = version()
    files = (1 << {1: 13, 2: 14}.get(abi, 15)) - 1 if abi < 5 else (1 << 16) - 1
    network = 3 if abi >= 4 else 0
    scoped = _SCOPE_ABSTRACT_UNIX | _SCOPE_SIGNAL if abi >= 6 else 0
    attributes = struct.pack("<QQQ", files, network, scoped)[
        : 8 if abi < 4 else 16 if abi < 6 else 24
    ]
    ruleset = int(
        _libc.syscall(
            _CREATE_RULESET,
            ctypes.create_string_buffer(attributes, len(attributes)),
            ctypes.c_size_t(len(attributes)),
            0,
        )
    )
    if ruleset < 0:
        raise OSError(ctypes.get_errno(), "landlock ruleset refused")
    for path in readable:
        _allow(ruleset, path, _READ_FILE | _EXECUTE | (_READ_DIR if os.path.isdir(path) else 0))
    for path in devices:
        _allow(ruleset, path, _READ_FILE | _WRITE_FILE)
    _allow(ruleset, writable, files & ~_EXECUTE)
    return ruleset


def confine(rules: int) -> None:
    """Apply the rules to this process and its children, permanently. Needs no_new_privs."""
    if _libc.syscall(_RESTRICT_SELF, rules, 0):
        raise OSError(ctypes.get_errno(), "landlock refused")


def _allow(rules: int, path: str, access: int) -> None:
    handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    rule = struct.pack("<Qi", access, handle)
    if _libc.syscall(
        _ADD_RULE, rules, _PATH_BENEATH, ctypes.create_string_buffer(rule, len(rule)), 0
    ):
        raise OSError(ctypes.get_errno(), f"landlock rule for {path} refused")
    os.close(handle)
