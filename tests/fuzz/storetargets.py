"""What travels between clients and stores besides Arrow: requests, answers, and files of samples in JSON."""

from __future__ import annotations

import io
import json
from contextlib import suppress
from functools import cache
from typing import Any, Final

import elea
from elea.api.receipt import answer_of, error_of
from elea.model import errors
from elea.model.errors import EleaError, InvalidKeyExpr, InvalidSelector, StoreError
from elea.model.node_id import NodeId
from elea.model.selector import Selector
from elea.model.timestamp import Hlc
from elea.node.storage.aligner_answers import packed, unpacked
from elea.node.storage.aligner_calls import buckets_of, error_in
from elea.store import memory_log
from elea.store.inplace import Places
from elea.store.logreads import Range
from elea.store.transfer import Times, export_json, import_json
from tests.fuzz.laws import require
from tests.fuzz.target import Target
from tests.hostile.arrows import honest
from tests.unit.store.samples import sample

__all__ = ["answers_target", "import_target", "requests_target"]

# -- requests ---------------------------------------------------------------------------------------------------------

VERBS: Final = ("put", "puts", "batch", "stage", "commit", "read", "cursor", "align")
WRITES: Final = ("put", "puts", "batch", "stage", "commit")
ROWS: Final = 40
TIMEOUT: Final = 30.0

REQUESTS: Final = (
    (0, "src=b1.1.1;time=6000000000000000.b1;kind=put", b"value"),
    (1, "durability=transient", b""),
    (2, "src=b1.1.0;after=b1.0.0", honest(("w/a", "w/b"))),
    (3, "src=b1.1.0;piece=p0", honest(("w/a",))),
    (4, "src=b1.1.0", b'["p0"]'),
    (4, "src=b1.1.0;ask", b""),
    (4, "src=b1.1.0;drop", b""),
    (5, "from=0;to=30;bytes=1000;kind=put", b""),
    (5, "time=[now(-1h)..now()];limit=5;order=newest;rows=2", b""),
    (5, "by=time;skip_damaged;log=r", b'{"keys": ["r/**", "r/a"]}'),
    (5, "measure=1000;from=3", b""),
    (6, "name=c;move=3", b""),
    (6, "name=c;drop", b""),
    (7, "what=head;floor=0;forget=0", b""),
    (7, "what=digest;level=36;of=0.1.2;floor=0;forget=0", b""),
    (7, "what=list;level=36;bucket=0;part=0;parts=1;floor=0;forget=0", b""),
    (7, "what=rows;epoch=e", packed([0, 1, 2, 1 << 40])),
)
TOKENS: Final = tuple(
    text.encode()
    for text in (";", "=", "src=", "from=", "to=", "limit=", "time=", "what=", "level=", "part=", "9" * 19, "9" * 30,
                 "-1", "now()", "..", "[", "]", '{"keys":', "null", "[" * 2_000, "r/**", "*",
                 "$*", "//", "b1.0.0", "é", "\0")
)  # fmt: skip


@cache
def _broker() -> elea.Session:
    """A router of this process with two storages in memory: what is read does not grow, what is written does."""
    quiet = {"scouting": {"multicast": {"enabled": False}}, "listen": {"endpoints": []}, "mode": "router"}
    storages = {name: {"key_expr": f"{name}/**", "volume": "memory"} for name in ("r", "w")}
    manager = {"storage_manager": {"volumes": {}, "storages": storages}}
    session = elea.open(elea.Config.from_json5(json.dumps({**quiet, "plugins": manager})))
    for number in range(ROWS):
        session.put(f"r/{number % 5}", f"value {number}", durability="transient", ack=True)
    return session


def requests_target() -> Target:
    """A request: octet 0 is the verb, a line of parameters, the payload. Every one is answered, and by no surprise."""

    def decode(data: bytes) -> list[Any]:
        verb = VERBS[data[0] % len(VERBS)] if data else "read"
        line, _, payload = data[1:].partition(b"\n")
        text = line.decode("utf-8", "replace")
        key = ("w/a" if verb == "put" else "w/**") if verb in WRITES else "r/**"
        selector = Selector(f"@store/{verb}/{key}?{text}")
        replies = _broker().get(selector, payload=payload, consolidation=elea.ConsolidationMode.NONE, timeout=TIMEOUT)
        return list(replies)

    def law(data: bytes, replies: list[Any]) -> None:
        for reply in replies:
            if reply.err is not None:
                form = json.loads(reply.err.payload.to_bytes())
                require(form["error"] in errors.__all__, "errors have a class that clients know", form)
                require("internal" not in form["text"], "nothing unexpected happens", form)

    seeds = tuple(bytes([verb]) + text.encode() + b"\n" + payload for verb, text, payload in REQUESTS)
    refusals = (InvalidSelector, InvalidKeyExpr)
    return Target(
        "store-requests", decode, law, refusals, lambda: seeds, lambda: TOKENS, 4_096, repeats=False, room=8 << 30
    )


# -- answers ----------------------------------------------------------------------------------------------------------

ANSWERS: Final = (
    b'{"log":"l","epoch":"e","first":0,"next":3,"end":3,"more":true,"places":[[0,"/x",1,2,3,4,5]]}',
    b'{"error":"StoreCorrupt","text":"bad","segment":"0.arrows","position":3,"last":9}',
    b'{"error":"ArrowRefused","text":"x","what":"y","problem":"z","args":[1]}',
    b'{"node":"n","epoch":"e","floor":"ff","buckets":[[0,1,2],[3,4,5]]}',
    b"Timeout",
    b"[1]",
    b"\0\0\0\0\0\0\0\1\xff",
    b'{"buckets":{"a":1}}',
)
ANSWER_TOKENS: Final = tuple(
    text.encode()
    for text in ('"error":', '"text":', '"StoreError"', '"__class__":1', '"args":"x"', "null", "[", "]", "{", "}",
                 "1e999", "9" * 40, "-1", "[" * 2_000, '"buckets":', '"places":', "true",
                 '"SystemExit"', "NaN", "\\ud800")
)  # fmt: skip


def answers_target() -> Target:
    """Small answers and errors of stores, and what brokers tell each other in JSON."""

    def decode(data: bytes) -> object:
        unpacked(data)
        error_in(data)
        error_of(data)
        form = answer_of(data)
        places = form.get("places")
        if places:
            Places.among([], places)
        with suppress(TypeError, ValueError, OverflowError):  # who asked a broker for them counts these as no sense
            buckets_of(form.get("buckets"))
        return form

    def law(data: bytes, found: object) -> None:
        error = error_of(data)
        require(isinstance(error, EleaError), "an error is one of ours", error)
        str(error)
        require(isinstance(found, dict), "an answer is an object", found)

    return Target("store-answers", decode, law, (StoreError,), lambda: ANSWERS, lambda: ANSWER_TOKENS, 8_192)


# -- files ------------------------------------------------------------------------------------------------------------


def import_target() -> Target:
    """Lines of JSON to be imported; what was taken is the same when it is exported and imported again."""

    def watch(_: int) -> None:
        return

    def taken(data: bytes) -> Any:
        log = memory_log()
        import_json(log, io.BytesIO(data), watch, Times(log, Hlc(NodeId(b"\1")), 1 << 60, restamp=True))
        return log

    def decode(data: bytes) -> Any:
        return taken(data)

    def law(data: bytes, log: Any) -> None:
        out = io.BytesIO()
        export_json(log, Range(), out)
        again = taken(out.getvalue())
        require(
            [one.record for one in log.read()] == [one.record for one in again.read()], "an export is imported", data
        )

    return Target("import-json", decode, law, (StoreError,), _lines, lambda: ANSWER_TOKENS, 8_192, repeats=False)


@cache
def _lines() -> tuple[bytes, ...]:
    found = []
    for rows in (1, 2, 5, 8):
        with memory_log() as log:
            source = (b"\1", 2, rows)
            log.append([sample(number) for number in range(rows)] + [sample(9, source=source)])
            out = io.BytesIO()
            export_json(log, Range(), out)
            found.append(out.getvalue())
    return (*found, b"", b"\n\n")
