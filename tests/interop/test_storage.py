"""Storages of `elea broker` and clients of eclipse-zenoh: what they put is there, also after `kill -9`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zenoh

from tests.interop.storagemodel import Program
from tests.interop.storing import StoringBroker, client
from tests.unit.cli.running import Running
from tests.unit.node.storage.serving import eventually

pytestmark = pytest.mark.interop

BLOCK = zenoh.CongestionControl.BLOCK
NONE = zenoh.ConsolidationMode.NONE


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[StoringBroker]:
    options = ("--store", str(tmp_path / "store"), "--persist", "home/**", "--transient", "now/**")
    with StoringBroker(*options) as made:
        yield made


def get(session: Any, selector: str, **options: Any) -> list[tuple[str, str]]:
    """Sorted, since eclipse-zenoh hands out latest values in the order of a hash table."""
    replies = session.get(selector, timeout=60, **options)
    return sorted((str(reply.ok.key_expr), reply.ok.payload.to_string()) for reply in replies)


def acknowledged(session: Any, key: str, number: int, value: str) -> dict[str, Any]:
    (reply,) = session.get(f"@store/put/{key}?src=a1.1.{number}", payload=value, consolidation=NONE, timeout=60)
    assert reply.ok is not None, reply.err.payload.to_string()
    form = json.loads(reply.ok.payload.to_string())
    assert isinstance(form, dict)
    return form


def test_values_are_there_after_kill_9(broker: StoringBroker) -> None:
    with client(broker.locator) as session:
        for number in range(20):
            session.put(f"home/{number}", f"v{number}", encoding="text/plain", congestion_control=BLOCK)
        session.put("now/x", "gone", congestion_control=BLOCK)
        session.delete("home/3", congestion_control=BLOCK)
        before = get(session, "**")
        acknowledged(session, "home/ack", 1, "safe")
    broker.kill()
    broker.restart()
    with client(broker.locator) as session:
        after = get(session, "**")
        history = get(session, "home/3?_history", consolidation=NONE)
        again = acknowledged(session, "home/ack", 1, "safe")

    kept = sorted((f"home/{number}", f"v{number}") for number in range(20) if number != 3)
    assert before == sorted([*kept, ("now/x", "gone")])
    assert after == sorted([*kept, ("home/ack", "safe")])
    assert history == [("home/3", ""), ("home/3", "v3")]
    assert again["repeated"]


def test_acknowledged_puts_survive_a_kill_in_their_midst(broker: StoringBroker) -> None:
    safe: list[str] = []
    with client(broker.locator) as session:
        answers: list[tuple[int, Any]] = []
        for number in range(200):
            session.get(
                f"@store/put/home/{number}?src=a1.1.{number}",
                lambda reply, number=number: answers.append((number, reply)),
                payload="x",
                consolidation=NONE,
            )
        eventually(lambda: len(answers) >= 20, "acknowledgements")
        broker.kill()
        safe = [f"home/{number}" for number, reply in list(answers) if reply.ok is not None]
    broker.restart()
    with client(broker.locator) as session:
        stored = [key for key, _ in get(session, "home/**?_history", consolidation=NONE)]

    assert len(safe) >= 20
    assert set(safe) <= set(stored)
    assert len(stored) == len(set(stored))


def test_second_broker_on_the_same_directory_is_refused(broker: StoringBroker, tmp_path: Path) -> None:
    with Running(
        "broker", "-l", "tcp/127.0.0.1:0", "--no-multicast-scouting", "--store", str(tmp_path / "store")
    ) as two:
        told = two.error_line()
        code = two.end()

    assert f"in use by process {broker.running.process.pid}" in told
    assert code == 4


def test_storage_is_seen_in_the_admin_space(broker: StoringBroker) -> None:
    with client(broker.locator) as session:
        session.put("home/x", "x", congestion_control=BLOCK)
        get(session, "home/x")
        place = f"@/{broker.id}/router/status/plugins/storage_manager/storages"
        facts = [json.loads(reply.ok.payload.to_string()) for reply in session.get(f"{place}/**", consolidation=NONE)]

    (home,) = [fact for fact in facts if fact["key_expr"] == "home/**"]
    assert (home["kept"], home["state"], home["durability"]) == (1, "open", "persistent")


def test_answers_are_those_of_a_model(broker: StoringBroker) -> None:
    """Hundreds here; `python -m tests.interop.storagemodel` for 10,000."""
    with client(broker.locator) as session:
        program = Program(session, zenoh, seed=4)
        for _ in range(300):
            program.step()

    assert program.checked == 300
    assert len(program.model.log) > 300
