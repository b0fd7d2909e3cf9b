"""Several machines made of one: each has a network, files, shared memory and a name of its own.

A machine is a network namespace, joined to the others by a bridge in a namespace of its own, so that nothing of it is
seen outside. What runs on a machine has, by a mount namespace, files of its own under `Machines.place`; one folder
there, `shared`, is the same on those that are told so. Programs and libraries are those of the real machine, as if
they were installed everywhere. Needs Linux, root and iproute2; `lacking` says what is not there.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

__all__ = ["Machines", "Traffic", "lacking"]

NETWORK: Final = "10.77.0"
"""Addresses that exist in these namespaces only."""

TOOLS: Final = {
    "ip": "iproute2",
    "bridge": "iproute2",
    "unshare": "util-linux",
    "mount": "mount",
    "hostname": "hostname",
}

ENTER: Final = """
set -e
place=$1 name=$2 is_sharing=$3
shift 3
hostname "$name"
mount -t tmpfs tmpfs /dev/shm
mount --bind "$place/$name/hosts" /etc/hosts
if [ "$is_sharing" = yes ]; then mount --bind "$place/shared" "$place/$name/shared"; fi
mount --rbind "$place/$name" "$place"
exec "$@"
"""
"""What is done before a program starts on a machine; `ip` and `unshare` have made the namespaces."""


class Traffic(NamedTuple):
    """Bytes that one machine has received and sent."""

    received: int
    sent: int


def lacking() -> str | None:
    """Why there can be no such machines here; None if there can."""
    for tool, package in TOOLS.items():
        if shutil.which(tool) is None:
            return f"the command {tool} is missing: install {package}"
    if os.geteuid() != 0:
        return "network namespaces are made by root only"
    try:
        with Machines(["probe"]) as machines, machines.start("probe", ["true"], stdout=subprocess.DEVNULL) as probe:
            code = probe.wait()
    except subprocess.CalledProcessError as error:
        return f"{' '.join(error.cmd)}: {error.stderr.strip()}"
    return None if code == 0 else "mount namespaces are not permitted here: unshare or mount fails"


class Machines:
    """Machines with a bridge between them.

    Args:
        names: of the machines.
        sharing: those that see the folder `shared`; all, unless given.
    """

    def __init__(self, names: Sequence[str], *, sharing: Sequence[str] | None = None) -> None:
        self._names = list(names)
        self._sharing = set(names if sharing is None else sharing)
        self._prefix = f"elea-{os.getpid()}"
        self.place = Path(tempfile.mkdtemp(prefix="elea-machines-"))
        """Where programs on a machine have files of their own, and `shared`."""

    def __enter__(self) -> Self:
        try:
            self._make()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._remove()

    def _make(self) -> None:
        (self.place / "shared").mkdir()
        hosts = "".join(f"{self.address(name)} {name}\n" for name in self._names)
        _ip("netns", "add", self._switch)
        _ip("-n", self._switch, "link", "add", "br0", "type", "bridge")
        _ip("-n", self._switch, "link", "set", "br0", "up")
        for name in self._names:
            for folder in ("shared", "tmp"):
                (self.place / name / folder).mkdir(parents=True)
            (self.place / name / "hosts").write_text(f"127.0.0.1 localhost\n{hosts}", encoding="utf-8")
            space, port = self._space(name), self._port(name)
            _ip("netns", "add", space)
            _ip("link", "add", "eth0", "netns", space, "type", "veth", "peer", "name", port, "netns", self._switch)
            _ip("-n", self._switch, "link", "set", port, "master", "br0", "up")
            _ip("-n", space, "address", "add", f"{self.address(name)}/24", "dev", "eth0")
            for link in ("lo", "eth0"):
                _ip("-n", space, "link", "set", link, "up")

    def _remove(self) -> None:
        listed = _ip("netns", "list").split()
        for space in [self._switch, *map(self._space, self._names)]:
            if space in listed:
                _ip("netns", "delete", space)
        shutil.rmtree(self.place, ignore_errors=True)

    @property
    def _switch(self) -> str:
        return f"{self._prefix}-switch"

    def _space(self, name: str) -> str:
        return f"{self._prefix}-{name}"

    def _port(self, name: str) -> str:
        return f"p{self._names.index(name)}"

    def address(self, name: str) -> str:
        """Where the others reach a machine."""
        return f"{NETWORK}.{self._names.index(name) + 1}"

    def files(self, name: str) -> Path:
        """Where the files that a machine has for itself lie in truth."""
        return self.place / name

    def start(
        self, name: str, words: Sequence[str], *, environment: Mapping[str, str] | None = None, **options: Any
    ) -> subprocess.Popen[Any]:
        """Start a program on a machine; its process is that of the program."""
        is_sharing = "yes" if name in self._sharing else "no"
        enter = ["unshare", "--mount", "--ipc", "--uts", "--propagation", "private", "sh", "-c", ENTER, "sh"]
        called = ["ip", "netns", "exec", self._space(name), *enter, str(self.place), name, is_sharing, *words]
        own = {"TMPDIR": str(self.place / "tmp")}
        return subprocess.Popen(called, env={**os.environ, **own, **(environment or {})}, **options)

    def cut(self, one: str, other: str) -> None:
        """Let nothing pass between two machines any more, without a word to either; others are reached as before."""
        for name in (one, other):
            self._isolate(name, "on")

    def mend(self, one: str, other: str) -> None:
        """Let everything pass again."""
        for name in (one, other):
            self._isolate(name, "off")

    def _isolate(self, name: str, how: str) -> None:
        # Ports of a bridge that are isolated do not hear each other: exactly the pair, as long as one is cut at a time.
        _ip("-n", self._switch, "link", "set", self._port(name), "type", "bridge_slave", "isolated", how)

    def traffic(self) -> dict[str, Traffic]:
        """What has passed by now, of each machine; as its port of the bridge has counted it."""
        found = {}
        for name in self._names:
            words = ["cat", *(f"/sys/class/net/{self._port(name)}/statistics/{way}_bytes" for way in ("tx", "rx"))]
            received, sent = _ip("netns", "exec", self._switch, *words).split()
            found[name] = Traffic(int(received), int(sent))
        return found

    @contextlib.contextmanager
    def apart(self, one: str, other: str) -> Any:
        """Two machines that do not reach each other for a while."""
        self.cut(one, other)
        try:
            yield
        finally:
            self.mend(one, other)


def _ip(*words: str) -> str:
    """What a command of iproute2 prints.

    Raises:
        CalledProcessError: it failed; with what it says.
    """
    return subprocess.run(["ip", *words], check=True, capture_output=True, text=True).stdout
