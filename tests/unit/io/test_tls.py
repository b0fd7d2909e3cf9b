"""TLS: both kinds of trust, every way a certificate can be wrong, two threads on one link."""

from __future__ import annotations

import logging
import random
import shutil
import socket
import ssl
import time
from dataclasses import replace
from pathlib import Path

import pytest

from elea.io.dial import connect
from elea.io.link import Link
from elea.io.linkerrors import CannotConnect, CertificateError, CertificateRefused, ConnectTimeout, LinkClosed
from elea.io.listener import listen
from elea.io.locator import Locator
from elea.io.loop import Loop
from elea.io.tls import TlsLink
from elea.io.tls_settings import TlsSettings
from elea.model.errors import ConfigError
from tests.unit.io.ends import (
    PATIENCE,
    Authority,
    accepting,
    in_thread,
    open_files,
    own_threads,
    pair,
    prefixed,
    read_batches,
    receive,
    until,
)

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="the openssl command makes the certificates")

HERE = "tls/127.0.0.1:0"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def settings(authority: Authority) -> TlsSettings:
    certificate, key = authority.issue("server")
    return TlsSettings(authority.certificate, listen_certificate=certificate, listen_private_key=key)


@pytest.fixture(scope="module")
def mutual(authority: Authority, settings: TlsSettings) -> TlsSettings:
    certificate, key = authority.issue("client")
    return replace(settings, enable_mtls=True, connect_certificate=certificate, connect_private_key=key)


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "elea.io")


def test_batches_cross_in_both_directions_at_once(settings: TlsSettings) -> None:
    rng = random.Random(3)
    batches = [rng.randbytes(rng.choice((0, 1, 5_000, 65_000))) for _ in range(200)]
    with pair(HERE, settings) as (near, far):
        got: dict[str, list[bytes]] = {"near": [], "far": []}

        def answer() -> None:
            for batch in batches:
                far.send(prefixed(batch))

        threads = [
            in_thread(lambda: read_batches(near, got["near"].append)),
            in_thread(lambda: read_batches(far, got["far"].append)),
            in_thread(answer),
        ]

        near.send([prefixed(batch) for batch in batches])
        assert until(lambda: len(got["near"]) == len(got["far"]) == len(batches))
        near.close()
        far.close()
        for thread in threads:
            thread.join(PATIENCE)

    assert got["near"] == got["far"] == batches
    assert isinstance(near, TlsLink)
    assert near._tls.version() in ("TLSv1.2", "TLSv1.3")
    assert near.remote.startswith("tls/")


def test_mutual_trust_names_the_client(mutual: TlsSettings) -> None:
    with pair(HERE, mutual) as (near, far):
        far.send(b"x")
        receive(near, memoryview(bytearray(1)))

        assert far.peer_name() == "client"  # type: ignore[attr-defined]
        assert near.peer_name() == "server"  # type: ignore[attr-defined]


def test_client_without_a_certificate_is_refused(mutual: TlsSettings) -> None:
    bare = replace(mutual, connect_certificate=None, connect_private_key=None)
    with accepting(HERE, mutual) as side:
        link = connect(side.locator, tls=bare)  # with TLS 1.3 the refusal comes after our half of the handshake
        with pytest.raises(CertificateRefused, match="enable_mtls"):
            receive(link, memoryview(bytearray(1)))
        link.close()

        assert until(lambda: side.listener.failures == 1)  # type: ignore[attr-defined]
        assert not side.links


def test_server_of_an_unknown_issuer_is_refused(settings: TlsSettings, tmp_path: Path) -> None:
    other = replace(settings, root_ca_certificate=Authority(tmp_path, "other").certificate)
    with accepting(HERE, settings) as side, pytest.raises(CertificateError, match="set root_ca_certificate") as caught:
        connect(side.locator, tls=other)

    assert isinstance(caught.value, CannotConnect)


def test_default_roots_do_not_know_a_private_issuer(settings: TlsSettings) -> None:
    with accepting(HERE, settings) as side, pytest.raises(CertificateError):
        connect(side.locator)


def test_name_is_verified_unless_switched_off(authority: Authority, settings: TlsSettings) -> None:
    certificate, key = authority.issue("elsewhere", "DNS:elsewhere.example")
    strict = replace(settings, listen_certificate=certificate, listen_private_key=key)
    with accepting(HERE, strict) as side:
        with pytest.raises(CertificateError, match="verify_name_on_connect"):
            connect(side.locator, tls=strict)

        link = connect(f"{side.locator}#verify_name_on_connect=false", tls=strict)
        link.close()


def test_expired_certificate_says_so(authority: Authority, settings: TlsSettings) -> None:
    certificate, key = authority.issue("expired", days=-1)
    old = replace(settings, listen_certificate=certificate, listen_private_key=key)
    with accepting(HERE, old) as side, pytest.raises(CertificateError, match="renew"):
        connect(side.locator, tls=old)


@pytest.mark.parametrize("change", ["missing", "garbage", "mismatch", "root missing", "root garbage"])
def test_bad_files_are_named(
    change: str, authority: Authority, settings: TlsSettings, tmp_path: Path, loop: Loop
) -> None:
    garbage = tmp_path / "garbage.pem"
    garbage.write_text("not a certificate")
    other_key = authority.issue("third")[1]
    wrong, file = {
        "missing": (replace(settings, listen_certificate="/nonexistent.pem"), "/nonexistent.pem"),
        "garbage": (replace(settings, listen_certificate=str(garbage)), str(garbage)),
        "mismatch": (replace(settings, listen_private_key=other_key), other_key),
        "root missing": (replace(settings, root_ca_certificate="/no.pem", enable_mtls=True), "/no.pem"),
        "root garbage": (replace(settings, root_ca_certificate=str(garbage), enable_mtls=True), str(garbage)),
    }[change]

    with pytest.raises(CertificateError) as caught:
        listen(HERE, on_link=lambda _: None, loop=loop, tls=wrong)

    assert caught.value.file == file
    assert file in str(caught.value)


def test_missing_settings_are_named(settings: TlsSettings, loop: Loop) -> None:
    for wrong, name in (
        (TlsSettings(), "listen_private_key"),
        (replace(settings, listen_certificate=None), "listen_certificate"),
        (replace(settings, enable_mtls=True, root_ca_certificate=None), "root_ca_certificate"),
    ):
        with pytest.raises(ConfigError, match=name):
            listen(HERE, on_link=lambda _: None, loop=loop, tls=wrong)


def test_locator_overrides_settings() -> None:
    text = "tls/h:1#root_ca_certificate_file=/r.pem;enable_mtls=true;verify_name_on_connect=false"

    changed = TlsSettings(connect_certificate="/c.pem").for_locator(Locator.parse(text))

    assert changed == TlsSettings(
        "/r.pem", enable_mtls=True, connect_certificate="/c.pem", verify_name_on_connect=False
    )
    with pytest.raises(ConfigError, match="true or false"):
        TlsSettings().for_locator(Locator.parse("tls/h:1#enable_mtls=yes"))


def test_side_that_speaks_no_tls_is_told(settings: TlsSettings) -> None:
    with accepting("tcp/127.0.0.1:0") as side:
        port = side.locator.rpartition(":")[2]
        with pytest.raises(ConnectTimeout, match="speaks tls"):
            connect(f"tls/127.0.0.1:{port}", tls=settings, timeout=0.05)
        side.listener._on_link = lambda link: link.close()  # type: ignore[attr-defined]
        with pytest.raises(CertificateError, match="tls"):
            connect(f"tls/127.0.0.1:{port}", tls=settings, timeout=5)

        def babble(link: Link) -> None:
            side.links.append(link)
            link.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        side.listener._on_link = babble  # type: ignore[attr-defined]
        with pytest.raises(CertificateError, match="tls"):
            connect(f"tls/127.0.0.1:{port}", tls=settings, timeout=5)


def test_silent_caller_holds_up_nobody(settings: TlsSettings) -> None:
    with accepting(HERE, settings) as side:
        address = ("127.0.0.1", Locator.parse(side.locator).port)
        with socket.create_connection(address), socket.create_connection(address) as babbler:
            babbler.sendall(b"GET / HTTP/1.1\r\n\r\n")
            link = connect(side.locator, tls=settings, timeout=5)

            assert side.first().remote == link.local
            assert until(lambda: side.listener.failures == 1)  # type: ignore[attr-defined]
            link.close()

            start = time.monotonic()
            side.listener.close()
            assert time.monotonic() - start < PATIENCE / 2
    assert until(lambda: not own_threads())


def test_close_wakes_reader_and_writer(settings: TlsSettings) -> None:
    with pair(HERE, settings) as (near, _):
        ended: list[Exception] = []

        def write() -> None:
            try:
                near.send(bytes(64 << 20))
            except LinkClosed as error:
                ended.append(error)

        threads = [in_thread(lambda: read_batches(near, lambda _: None)), in_thread(write)]
        time.sleep(0.1)

        start = time.monotonic()
        near.close()
        for thread in threads:
            thread.join(PATIENCE)

        assert time.monotonic() - start < PATIENCE / 2
        assert len(ended) == 1
        assert near._socket.fileno() == -1  # type: ignore[attr-defined]


def test_try_send_holds_back_no_more_than_a_chunk(settings: TlsSettings) -> None:
    with pair(HERE, settings) as (near, far):
        data = random.Random(5).randbytes(1 << 20)
        taken = 0
        while count := near.try_send([data[:1_000], data[1_000:]]):
            taken += count
            last = count
        assert near.held

        expected = data * (taken // len(data)) + data[:last] if last < len(data) else data * (taken // len(data))
        got = bytearray()
        view = memoryview(bytearray(1 << 20))

        def read() -> None:
            while len(got) < len(expected):
                got.extend(view[: receive(far, view)])

        thread = in_thread(read)
        near.send(b"")  # writes what was held back
        thread.join(PATIENCE)

        assert not near.held
        assert bytes(got) == expected


def test_old_tls_is_not_spoken(settings: TlsSettings) -> None:
    from elea.io.tls import client_context, server_context

    for context in (client_context(settings, "x"), server_context(settings, "x")):
        assert context.minimum_version == ssl.TLSVersion.TLSv1_2


def test_cycles_leave_nothing_behind(settings: TlsSettings) -> None:
    assert until(lambda: not own_threads())
    files = open_files()

    with accepting(HERE, settings) as side:
        for number in range(50):
            link = connect(side.locator, tls=settings)
            assert until(lambda number=number: len(side.links) == number + 1)  # type: ignore[misc]
            link.close()
            side.links[-1].close()

    assert until(lambda: not own_threads())
    assert until(lambda: open_files() <= files)
