"""Reads what the run has left: ledgers, the broker's log, the tables, the alerts that came."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from elea.demo import ledger
from elea.demo.drivejudge import DriveEvidence, Message
from elea.demo.judge import Evidence, Stored, Window
from elea.demo.lamp import LAMP, LAMP_LEDGER, Lamp
from elea.demo.lampjudge import LampEvidence
from elea.demo.phone import PHONE
from elea.demo.world import Origin

if TYPE_CHECKING:
    import elea

__all__ = ["TABLES", "alert_origin", "gather", "to_table"]

TABLES: Final = {
    "bronze": "tables/bronze",
    "silver_lights": "tables/silver/lights",
    "silver_robots": "tables/silver/robots",
    "quarantine": "tables/silver/robots_quarantine",
    "gold_floors": "tables/gold/floors",
    "silver_vehicle": "tables/silver/vehicle",
}
"""As demo.toml has them."""

PATIENCE_SECONDS: Final = 120.0


def gather(
    place: Path, session: elea.Session, received: Iterable[str], lamp: Lamp, *, is_broker_killed: bool
) -> Evidence:
    """Everything that `judge` asks for."""
    ledgers = {path.stem: ledger.read(path) for path in sorted((place / "ledger").glob("*.jsonl"))}
    drive = DriveEvidence(
        vehicle=ledgers.pop("vehicle", ledger.Ledger("vehicle")),
        phone=ledgers.pop(PHONE, ledger.Ledger(PHONE)),
        log=_messages(session),
        table=[Message(**row) for row in _rows(place, "silver_vehicle", *Message._fields)],
        is_broker_killed=is_broker_killed,
    )
    rows = _rows(place, "bronze", "key", "payload", "attachment", "timestamp")
    bronze = [
        Stored(row["key"], row["payload"], row["attachment"].decode(), _micros(row["timestamp"]))
        for row in rows
        if row["key"] != LAMP
    ]
    lit = LampEvidence(
        ledgers={
            name.removeprefix(LAMP_LEDGER): ledgers.pop(name) for name in list(ledgers) if name.startswith(LAMP_LEDGER)
        },
        seen={name: list(payloads) for name, payloads in lamp.seen.items()},
        log=_logged(session, LAMP, "payload"),
        rows=[row["payload"].decode() for row in rows if row["key"] == LAMP],
        late=lamp.late(),
        own=lamp.own,
        is_broker_killed=is_broker_killed,
    )
    return Evidence(
        ledgers=list(ledgers.values()),
        log=[origin for keys in ("myhouse/**", "fleet/**") for origin in _logged(session, keys, "attachment")],
        bronze=bronze,
        silver_lights=[row["origin"] for row in _rows(place, "silver_lights", "origin")],
        silver_robots=[row["origin"] for row in _rows(place, "silver_robots", "origin")],
        quarantine=[row["origin"] for row in _rows(place, "quarantine", "origin")],
        gold=[
            Window(_micros(row["begins"]) // 1_000_000, row["floor"], row["samples"], row["luminosity"])
            for row in _rows(place, "gold_floors", "begins", "floor", "samples", "luminosity")
        ],
        alerts=[alert_origin(payload) for payload in _logged(session, "alerts/**", "payload")],
        received=list(received),
        drive=drive,
        lamp=lit,
    )


def _messages(session: elea.Session) -> list[Message]:
    """The uProtocol messages that the broker has kept, each read by itself."""
    from elea.demo.drivemessage import Drive
    from elea.uprotocol import UMessageType, UPayload
    from elea.uprotocol.attachment import read_attachment

    def drive(payload: UPayload, *, has_failed: bool) -> tuple[str | None, float | None, float | None]:
        given = None if has_failed else payload.unpack(Drive)
        return (None, None, None) if given is None else (given.origin, given.speed, given.allowed)

    found = []
    table = session.read("up/**", timeout=PATIENCE_SECONDS).read_all().select(["attachment", "payload"])
    for row in table.to_pylist():
        given = read_attachment(row["attachment"])
        payload = UPayload(row["payload"], given.payload_format)
        reqid = None if given.reqid is None else str(given.reqid)
        values = drive(payload, has_failed=bool(given.commstatus))
        found.append(Message(str(given.id), UMessageType(given.type).name, reqid, *values))
    return found


def alert_origin(payload: bytes | str) -> str:
    """The origin of the reading that an alert is about."""
    return str(json.loads(payload)["origin"])


def to_table(place: Path) -> list[tuple[float, float]]:
    """For each sample of bronze: when it was put, and how many seconds later the table had it."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from deltalake import DeltaTable

    path = place / TABLES["bronze"]
    if not DeltaTable.is_deltatable(str(path)):
        return []
    found = []
    # A file is there from the moment of its commit, which the table's log has.
    actions = pa.table(DeltaTable(path).get_add_actions(flatten=True)).to_pylist()
    for action in actions:
        committed = _seconds(action["modification_time"])
        for origin in pq.read_table(path / action["path"], columns=["attachment"]).column(0).to_pylist():
            if not origin:
                continue  # of the lamp: the early dialects have no attachments
            put = Origin.parse(origin.decode()).at / 1e6
            found.append((put, committed - put))
    return sorted(found)


def _rows(place: Path, table: str, *columns: str) -> list[Mapping[str, Any]]:
    from deltalake import DeltaTable

    path = place / TABLES[table]
    if not DeltaTable.is_deltatable(str(path)):
        return []
    rows: list[Mapping[str, Any]] = DeltaTable(path).to_pyarrow_table(columns=list(columns)).to_pylist()
    return rows


def _logged(session: elea.Session, keys: str, column: str) -> list[str]:
    table = session.read(keys, timeout=PATIENCE_SECONDS).read_all()
    return [value.decode() for value in table.column(column).to_pylist()]


def _micros(moment: datetime) -> int:
    """Exactly: a float of seconds has not enough digits for it."""
    passed = moment.astimezone(UTC) - datetime.fromtimestamp(0, UTC)
    return (passed.days * 86_400 + passed.seconds) * 1_000_000 + passed.microseconds


def _seconds(moment: Any) -> float:
    return moment.timestamp() if isinstance(moment, datetime) else float(moment) / 1000
