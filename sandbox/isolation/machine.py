"""What programs with `unittest` tests see of a machine, on levels with namespaces: such tests are
often about sockets, processes and the system's figures.

Nothing here reaches outside the program's own namespaces.
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct

SHOWN = ("cpuinfo", "loadavg", "meminfo", "stat", "uptime")  # the kernel's files in /proc
HOSTS = "127.0.0.1 localhost\n::1 localhost\n"
# Closed connections leave nothing for the next program. Their buffers, which all namespaces take
# from one pool, are small.
TCP = {
    "tcp_max_tw_buckets": "0",
    "tcp_rmem": "4096 16384 65536",
    "tcp_wmem": "4096 16384 65536",
}
_SET_FLAGS, _UP = 0x8914, 1  # SIOCSIFFLAGS, IFF_UP


def start_loopback() -> bool:
    """Start the only interface of this process's new network namespace. Return False if the machine
    forbids it; programs then get no network sockets.
    """
    try:
        for name, value in TCP.items():
            with open(f"/proc/sys/net/ipv4/{name}", "w") as file:
                file.write(value)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
            fcntl.ioctl(handle, _SET_FLAGS, struct.pack("16sH22x", b"lo", _UP))
    except OSError:
        return False
    return True


def hidden(proc: str) -> list[str]:
    """Return the kernel's files and folders in a mounted /proc that programs must not see."""
    return [
        entry.path
        for entry in os.scandir(proc)
        if not (entry.name.isdigit() or entry.name in SHOWN or entry.is_symlink())
    ]
