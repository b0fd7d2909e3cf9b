"""Arrow that lies, sent to a broker from outside: it is refused with a reason, and nothing else happens.

Before there was one entrance for foreign Arrow, the first of these ended the broker, the second brought its memory back
in the text of an error, and the third took 2 GB of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import elea
from tests.hostile.arrows import bomb, honest, lies, shifted
from tests.robust.children import PATIENCE, Child, config
from tests.robust.served import options_for

MIB = 1 << 20
NONE = elea.ConsolidationMode.NONE
REQUESTS = ("@store/batch/f/**?src=b1.{number}.0", "@store/stage/f/**?src=b1.{number}.0;piece=p")


class Victim:
    """A broker with a storage, in a process of its own."""

    def __init__(self, directory: Path) -> None:
        words = ["broker", "--json", "--quiet", *options_for(directory)]
        self.child = Child(["elea", *words])
        self.locator = self.child.answer()["locators"][0]
        self.number = 0

    def session(self) -> elea.Session:
        return elea.open(config("client", "connect", self.locator))

    def send(self, session: elea.Session, request: str, payload: bytes) -> dict[str, Any]:
        """What a request brings: the one answer, good or bad."""
        self.number += 1
        selector = request.format(number=self.number)
        (reply,) = session.get(selector, payload=payload, consolidation=NONE, timeout=PATIENCE)
        found = reply.ok if reply.ok is not None else reply.err
        assert found is not None
        form = json.loads(found.payload.to_string())
        assert isinstance(form, dict)
        return form

    def info(self, session: elea.Session) -> dict[str, Any]:
        (reply,) = session.get("@store/info/*/f", timeout=PATIENCE)
        assert reply.ok is not None
        found = json.loads(reply.ok.payload.to_string())
        assert isinstance(found, dict)
        return found

    @property
    def peak(self) -> int:
        """The most memory it has had, in octets."""
        text = Path(f"/proc/{self.child.process.pid}/status").read_text()
        return 1024 * int(text.partition("VmHWM:")[2].split()[0])

    def check(self, session: elea.Session) -> None:
        """It is alive, and serves honest clients."""
        assert self.child.process.poll() is None
        answer = self.send(session, REQUESTS[0], honest())
        assert answer["rows"] == 2


@pytest.fixture(scope="module")
def victim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Victim]:
    found = Victim(tmp_path_factory.mktemp("hostile") / "store")
    yield found
    found.child.end()


@pytest.fixture
def session(victim: Victim) -> Iterator[elea.Session]:
    with victim.session() as made:
        yield made


@pytest.mark.parametrize("request_", REQUESTS, ids=["batch", "stage"])
def test_far_offset_does_not_end_the_broker(victim: Victim, session: elea.Session, request_: str) -> None:
    attack = shifted(1 << 30)

    answer = victim.send(session, request_, attack)

    assert len(attack) < 600
    assert answer["error"] == "ArrowRefused"
    victim.check(session)


@pytest.mark.parametrize("request_", REQUESTS, ids=["batch", "stage"])
def test_near_offset_brings_no_memory_back(victim: Victim, session: elea.Session, request_: str) -> None:
    with victim.session() as other:
        for number in range(2_000):
            other.put(f"f/secret-{number}", "secret-payload")
        honest_answer = victim.send(other, REQUESTS[0], honest(tuple(f"f/secret-{n}" for n in range(500)), 100))
        assert honest_answer["rows"] == 500

    for far in (24, 30, 40, 64, 100, 1_000, 4_096, 20_000, 65_536, 1 << 20):
        answer = victim.send(session, request_, shifted(far))

        assert answer["error"] == "ArrowRefused"
        assert "secret" not in json.dumps(answer)
        assert len(json.dumps(answer)) < 500
    victim.check(session)


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
@pytest.mark.parametrize("request_", REQUESTS, ids=["batch", "stage"])
def test_compressed_stream_does_not_take_memory(
    victim: Victim, session: elea.Session, request_: str, codec: str
) -> None:
    attack = bomb(codec, 2_048 * MIB)
    before = victim.peak

    answer = victim.send(session, request_, attack)

    assert answer["error"] == "ArrowRefused"
    assert "compress" in answer["text"]
    assert victim.peak - before < 64 * MIB + 2 * len(attack)
    victim.check(session)


@pytest.mark.parametrize("request_", REQUESTS, ids=["batch", "stage"])
def test_every_other_lie_is_refused_with_a_reason(victim: Victim, session: elea.Session, request_: str) -> None:
    end, before = victim.info(session)["end"], victim.peak
    refused = victim.info(session)["refused"]
    attacks = list(lies())

    for name, attack in attacks:
        answer = victim.send(session, request_, attack)

        assert answer.get("error") == "ArrowRefused", (name, answer)
        assert len(answer["text"]) < 500, (name, answer)
        assert "0x" not in answer["text"], (name, answer)

    assert victim.info(session)["end"] == end
    assert victim.info(session)["refused"] == refused + len(attacks)
    assert victim.peak - before < 64 * MIB
    victim.check(session)
