"""A query, its answers and their bodies are values, although they are written out."""

from __future__ import annotations

import pytest

from elea.model.encoding import Encoding
from elea.model.qos import ConsolidationMode, QueryTarget
from elea.space.questions import ErrorBody, QueryBody, ReplyBody, Request, Response, ResponseFinal
from elea.wire.primitives import Unknown

ALL = QueryTarget.ALL
BODY = QueryBody("x=1")
MORE = (Unknown(9, None),)


@pytest.mark.parametrize(
    ("make", "shown"),
    [
        (
            lambda number: Request(number, "k", ALL, BODY, 10, 5, 2),
            f"Request(1, 'k', {ALL!r}, {BODY!r}, 10, 5, 2, None)",
        ),
        (lambda number: Response(number, "k", b"body", 5, (b"n", 3)), "Response(1, 'k', b'body', 5, (b'n', 3), None)"),
        (lambda number: ResponseFinal(number, 5), "ResponseFinal(1, 5)"),
        (
            lambda number: QueryBody("p", ConsolidationMode.NONE, b"v", Encoding.TEXT_PLAIN, b"a", (b"n", 2, number)),
            "QueryBody('p', ConsolidationMode.NONE, b'v', Encoding('text/plain'), b'a', (b'n', 2, 1), ())",
        ),
        (lambda number: ReplyBody(None, bytes([number])), "ReplyBody(None, b'\\x01', ConsolidationMode.AUTO, ())"),
        (lambda number: ErrorBody(bytes([number])), "ErrorBody(b'\\x01', Encoding('zenoh/bytes'), None, ())"),
    ],
)
def test_they_are_compared_by_what_they_say_and_show_it(make, shown) -> None:  # type: ignore[no-untyped-def]
    assert make(1) == make(1)
    assert make(1) != make(2)
    assert make(1) != ResponseFinal(1)
    assert repr(make(1)) == shown


def test_what_is_not_said_is_usual() -> None:
    assert Request(1, "k", ALL, BODY) == Request(1, "k", ALL, BODY, None, 0x0D, None)
    assert Response(1, "k", b"body") == Response(1, "k", b"body", 0x0D, None)
    assert ResponseFinal(1) == ResponseFinal(1, 0x0D)
    assert QueryBody() == QueryBody("", ConsolidationMode.AUTO, None, Encoding.ZENOH_BYTES, None, None, ())


def test_extensions_count() -> None:
    assert QueryBody() != QueryBody(extensions=MORE)
    assert ReplyBody(None, b"") != ReplyBody(None, b"", extensions=MORE)
    assert ErrorBody(b"") != ErrorBody(b"", extensions=MORE)
