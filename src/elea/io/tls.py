"""Links over TLS: certificates by file, typed certificate errors, and a stream that two threads can use at once.

The cipher state (an `SSLObject` over memory) is used under a lock, the socket outside of it. A plain `SSLSocket` must
not be read and written by two threads at the same time, and a reader that waits inside it keeps the writer out.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from elea.io.link import Octets, TcpLink
from elea.io.linkerrors import CertificateError, CertificateRefused, ConnectTimeout, LinkClosed, LinkError
from elea.io.loop import IN, OUT, Loop, Pollable
from elea.io.timers import monotonic
from elea.io.tls_settings import TlsSettings
from elea.model.errors import ConfigError

__all__ = ["ServerHandshake", "TlsLink", "TlsSettings", "client_context", "server_context", "shake_hands"]

_RAW: Final = 1 << 16
_CHUNK: Final = 1 << 16
"""Bytes enciphered before they are written: one batch, so that what `try_send` holds back stays small."""

_CERTIFICATE_ALERTS: Final = ("CERTIFICATE", "UNKNOWN_CA", "ACCESS_DENIED", "DECRYPT_ERROR")


class TlsLink(TcpLink):
    """A TCP connection with TLS on it."""

    drains = True

    def __init__(
        self,
        sock: socket.socket,
        local: str,
        remote: str,
        *,
        tls: ssl.SSLObject,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
    ) -> None:
        super().__init__(sock, local, remote)
        self._tls = tls
        self._incoming = incoming
        self._outgoing = outgoing
        self._cipher = threading.Lock()
        self._writing = threading.Lock()
        self._waiting: Octets = b""

    @property
    def held(self) -> bool:  # type: ignore[override]
        return len(self._waiting) > 0

    def peer_name(self) -> str | None:
        """The common name in the other side's certificate; None when it showed none."""
        certificate = self._tls.getpeercert() or {}
        for group in certificate.get("subject", ()):
            for entry in group:
                if entry[0] == "commonName":
                    return str(entry[1])
        return None

    def send(self, data: Octets | Sequence[Octets]) -> None:
        pieces = [data] if isinstance(data, bytes | bytearray | memoryview) else data
        self._enter()
        try:
            with self._writing:
                self._flush()
                for piece in pieces:
                    view = memoryview(piece)
                    for at in range(0, len(view), _CHUNK):
                        self._waiting = self._encipher(view[at : at + _CHUNK])
                        self._flush()
        except OSError as error:
            raise self._broken(error) from error
        finally:
            self._leave()

    def try_send(self, data: Octets | Sequence[Octets]) -> int:
        pieces = [data] if isinstance(data, bytes | bytearray | memoryview) else data
        if not self._writing.acquire(blocking=False):
            return 0
        taken = 0
        try:
            self._enter()
            try:
                for piece in [*pieces, b""]:
                    view = memoryview(piece)
                    for at in range(0, max(len(view), 1), _CHUNK):
                        if not self._try_flush():
                            return taken
                        chunk = view[at : at + _CHUNK]
                        self._waiting = self._encipher(chunk)
                        taken += len(chunk)
                return taken
            finally:
                self._leave()
        except OSError as error:
            raise self._broken(error) from error
        finally:
            self._writing.release()

    def _take(self, view: memoryview, flags: int) -> int:
        while not (count := self._decipher(view)):
            arrived = self._socket.recv(_RAW, flags)
            if not arrived:
                return 0
            with self._cipher:
                self._incoming.write(arrived)
        return max(count, 0)

    def close(self) -> None:
        self._say_goodbye()
        super().close()

    def _say_goodbye(self) -> None:
        """Tell that the stream ends here on purpose, if that can be told without waiting."""
        try:
            self._enter()
        except LinkClosed:
            return
        try:
            if self._writing.acquire(blocking=False):
                try:
                    if not self._waiting:
                        with self._cipher, contextlib.suppress(ssl.SSLError):  # the other side need not answer
                            self._tls.unwrap()
                        with contextlib.suppress(OSError):
                            self._socket.send(self._outgoing.read(), socket.MSG_DONTWAIT)
                finally:
                    self._writing.release()
        finally:
            self._leave()

    def _encipher(self, chunk: Octets) -> bytes:
        with self._cipher:
            if len(chunk):
                self._tls.write(chunk)
            # What the reader's side of TLS wants to say (a new key, say) goes out here too: the reader never writes.
            return self._outgoing.read()

    def _decipher(self, view: memoryview) -> int:
        """Bytes read, 0 when more must arrive first, -1 at the end of the stream."""
        count = 0
        with self._cipher:
            try:
                while count < len(view):
                    more = self._tls.read(len(view) - count, view[count:])
                    if not more:
                        return count or -1
                    count += more  # type: ignore[operator]
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLZeroReturnError:
                return count or -1
        return count

    def _flush(self) -> None:
        while self._waiting:
            sent = self._socket.send(self._waiting)
            self._waiting = memoryview(self._waiting)[sent:] if sent < len(self._waiting) else b""

    def _try_flush(self) -> bool:
        if self._waiting:
            try:
                sent = self._socket.send(self._waiting, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return False
            self._waiting = memoryview(self._waiting)[sent:] if sent < len(self._waiting) else b""
        return not self._waiting

    def _broken(self, error: OSError) -> LinkClosed:
        if isinstance(error, ssl.SSLError) and not self.closed:
            reason = error.reason or str(error)
            if any(word in reason for word in _CERTIFICATE_ALERTS):
                return CertificateRefused(
                    self.remote,
                    f"our certificate was refused ({_plain(reason)}); check that the other side trusts its issuer, "
                    "and that connect_certificate is set if the other side wants one (enable_mtls)",
                )
            return LinkClosed(self.remote, f"tls failed: {_plain(reason)}")
        return super()._broken(error)


def shake_hands(
    sock: socket.socket, locator: str, *, context: ssl.SSLContext, server_name: str, timeout: float
) -> tuple[ssl.SSLObject, ssl.MemoryBIO, ssl.MemoryBIO]:
    """Do the TLS handshake on a connected socket, as the client; waits.

    Raises:
        CertificateError: a certificate is missing, not trusted or not for that name.
        ConnectTimeout: the other side did not answer in time.
    """
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_hostname=server_name)
    deadline = monotonic() + timeout
    try:
        while True:
            try:
                tls.do_handshake()
                done = True
            except ssl.SSLWantReadError:
                done = False
            sock.settimeout(max(deadline - monotonic(), 0.001))
            if outgoing.pending:
                sock.sendall(outgoing.read())
            if done:
                break
            data = sock.recv(_RAW)
            if not data:
                raise CertificateError(
                    locator, "the other side ended the handshake", "check that it speaks tls", what="tls"
                )
            incoming.write(data)
    except ssl.SSLError as error:
        with contextlib.suppress(OSError):  # tell the other side why
            sock.sendall(outgoing.read())
        raise _handshake_error(locator, error) from error
    except TimeoutError as error:
        raise ConnectTimeout(
            locator, f"no tls handshake in {timeout:g} s", "check that the other side speaks tls"
        ) from error
    except OSError as error:
        raise CertificateError(
            locator, f"the connection broke: {error.strerror or error}", what="tls handshake"
        ) from error
    sock.settimeout(None)
    return tls, incoming, outgoing


class ServerHandshake(Pollable):
    """The TLS handshake of a connection that was accepted, served by the loop.

    Args:
        on_end: told once: what a link is made with, or why there is none.
    """

    def __init__(
        self, sock: socket.socket, locator: str, context: ssl.SSLContext, loop: Loop, on_end: OnShaken, timeout: float
    ) -> None:
        super().__init__()
        self.socket = sock
        self._locator = locator
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._loop = loop
        self._on_end = on_end
        self._unsent = b""
        self._done = False
        self._ended = False
        self._timer = loop.after(timeout, self._late)
        loop.add(self, sock.fileno())

    def on_ready(self, mask: int) -> None:
        try:
            if mask & ~OUT:
                arrived = self.socket.recv(_RAW, socket.MSG_DONTWAIT)
                if not arrived:
                    self._end(CertificateError(self._locator, "the other side ended the handshake", what="tls"))
                    return
                self._incoming.write(arrived)
            self._step()
        except BlockingIOError:
            return
        except ssl.SSLError as error:
            with contextlib.suppress(OSError):  # tell the other side why
                self.socket.send(self._outgoing.read(), socket.MSG_DONTWAIT)
            self._end(_handshake_error(self._locator, error))
        except OSError as error:
            self._end(CertificateError(self._locator, f"the connection broke: {error.strerror or error}", what="tls"))

    def close(self, problem: str = "") -> None:
        """Give up."""
        self._end(LinkClosed(self._locator, problem) if problem else LinkClosed(self._locator))

    def _step(self) -> None:
        if not self._done:
            try:
                self._tls.do_handshake()
                self._done = True
            except ssl.SSLWantReadError:
                pass
        self._unsent += self._outgoing.read()
        if self._unsent:
            self._unsent = self._unsent[self.socket.send(self._unsent, socket.MSG_DONTWAIT) :]
        self._loop.change(self, IN | OUT if self._unsent else IN)
        if self._done and not self._unsent:
            self._end(None)

    def _late(self) -> None:
        self._end(ConnectTimeout(self._locator, "no tls handshake in time", "check that the other side speaks tls"))

    def _end(self, error: LinkError | None) -> None:
        if self._ended:
            return
        self._ended = True
        self._timer.cancel()
        self._loop.remove(self)
        self._on_end(self, (self._tls, self._incoming, self._outgoing) if error is None else error)


Shaken: TypeAlias = tuple[ssl.SSLObject, ssl.MemoryBIO, ssl.MemoryBIO]
OnShaken: TypeAlias = Callable[[ServerHandshake, Shaken | LinkError], None]


def client_context(settings: TlsSettings, locator: str) -> ssl.SSLContext:
    """What a connecting side needs; without `root_ca_certificate` the certificates of the system are trusted."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = settings.verify_name_on_connect
    if settings.root_ca_certificate is None:
        context.load_default_certs()
    else:
        _load_root(context, settings.root_ca_certificate, locator)
    if settings.connect_certificate is not None or settings.connect_private_key is not None:
        _load_pair(context, settings.connect_certificate, settings.connect_private_key, locator=locator, side="connect")
    return context


def server_context(settings: TlsSettings, locator: str) -> ssl.SSLContext:
    """What a listening side needs; with `enable_mtls` the other side must show a certificate of our root."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    _load_pair(context, settings.listen_certificate, settings.listen_private_key, locator=locator, side="listen")
    if settings.enable_mtls:
        if settings.root_ca_certificate is None:
            raise ConfigError("transport/link/tls", "enable_mtls needs a root to trust", "set root_ca_certificate")
        _load_root(context, settings.root_ca_certificate, locator)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def _load_root(context: ssl.SSLContext, file: str, locator: str) -> None:
    _readable(file, locator, "root_ca_certificate")
    try:
        context.load_verify_locations(file)
    except ssl.SSLError as error:
        problem = "holds no certificate in PEM form"
        raise CertificateError(locator, problem, "convert it to PEM", what="root_ca_certificate", file=file) from error


def _load_pair(context: ssl.SSLContext, certificate: str | None, key: str | None, *, locator: str, side: str) -> None:
    if certificate is None or key is None:
        name = f"{side}_private_key" if key is None else f"{side}_certificate"
        raise ConfigError("transport/link/tls", f"{name} is not set", f"set {name} to a PEM file")
    _readable(certificate, locator, f"{side}_certificate")
    _readable(key, locator, f"{side}_private_key")
    try:
        context.load_cert_chain(certificate, key, password=lambda: b"")
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            what, file, problem = f"{side}_private_key", key, f"does not belong to the certificate {certificate}"
            hint = "give the key the certificate was made with"
        else:
            what, file, problem = f"{side}_certificate", certificate, f"or the key {key} cannot be read as PEM"
            hint = "both must be PEM, and the key must have no pass phrase"
        raise CertificateError(locator, problem, hint, what=what, file=file) from error


def _readable(file: str, locator: str, what: str) -> None:
    try:
        with Path(file).open("rb"):
            pass
    except OSError as error:
        problem = f"cannot be read: {(error.strerror or str(error)).lower()}"
        raise CertificateError(locator, problem, "check the path and its permissions", what=what, file=file) from error


def _handshake_error(locator: str, error: ssl.SSLError) -> CertificateError:
    if isinstance(error, ssl.SSLCertVerificationError):
        message = error.verify_message
        if "Hostname mismatch" in message or "IP address mismatch" in message:
            hint = "connect by a name in the certificate, or set verify_name_on_connect to false"
        elif "expired" in message or "not yet valid" in message:
            hint = "renew the certificate or set the clock"
        else:
            hint = "set root_ca_certificate to the file of the issuer"
        return CertificateError(locator, message, hint, what="certificate of the other side")
    reason = error.reason or str(error)
    if any(word in reason for word in _CERTIFICATE_ALERTS):
        hint = "check that the other side trusts its issuer and that it is set if the other side wants one"
        return CertificateError(locator, f"refused by the other side ({_plain(reason)})", hint, what="our certificate")
    return CertificateError(
        locator, _plain(reason), "check that both sides speak tls 1.2 or later", what="tls handshake"
    )


def _plain(reason: str) -> str:
    return reason.replace("_", " ").lower()
