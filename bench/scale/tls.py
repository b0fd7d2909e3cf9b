"""Certificates for a run over TLS, and TLS over memory: asyncio's own keeps 256 KiB of buffers for every connection."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path
from typing import Final

__all__ = ["Cipher", "client_context", "make_certificate"]

HOST: Final = "127.0.0.1"
ROOM: Final = 1 << 16


def make_certificate(directory: Path) -> tuple[Path, Path]:
    """Files of a self-signed certificate and its key, made with the openssl command."""
    certificate, private_key = directory / "router.pem", directory / "router.key"
    words = (
        f"req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=router "
        f"-addext subjectAltName=IP:{HOST} -keyout {private_key} -out {certificate}"
    )
    subprocess.run(["openssl", *words.split()], check=True, capture_output=True)
    return certificate, private_key


def client_context(certificate: str) -> ssl.SSLContext:
    """What trusts that certificate and no other."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(certificate)
    return context


class Cipher:
    """The TLS of one connection: `receive` what came, send what `to_send` gives."""

    __slots__ = ("_incoming", "_outgoing", "_tls", "opened")

    def __init__(self, context: ssl.SSLContext) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=HOST)
        self.opened = False

    def receive(self, data: bytes) -> bytes:
        """Take what came, nothing to begin; returns the plain bytes in it.

        Raises:
            ssl.SSLError: the other side is not what it should be.
        """
        self._incoming.write(data)
        plain = []
        try:
            if not self.opened:
                self._tls.do_handshake()
                self.opened = True
            while part := self._tls.read(ROOM):
                plain.append(part)
        except ssl.SSLWantReadError:
            pass
        return b"".join(plain)

    def write(self, data: bytes) -> None:
        """Encipher."""
        self._tls.write(data)

    def to_send(self) -> bytes:
        """What waits for the socket."""
        return self._outgoing.read()
