"""A query and its answers are values, although they are written out."""

from __future__ import annotations

import pytest

from elea.model.qos import QueryTarget
from elea.space.questions import Request, Response, ResponseFinal

ALL = QueryTarget.ALL


@pytest.mark.parametrize(
    ("make", "shown"),
    [
        (lambda number: Request(number, "k", ALL, "body", 10, 5, 2), "Request(1, 'k', {!r}, 'body', 10, 5, 2)"),
        (lambda number: Response(number, "k", "body", 5, (b"n", 3)), "Response(1, 'k', 'body', 5, (b'n', 3))"),
        (lambda number: ResponseFinal(number, 5), "ResponseFinal(1, 5)"),
    ],
)
def test_they_are_compared_by_what_they_say_and_show_it(make, shown) -> None:  # type: ignore[no-untyped-def]
    assert make(1) == make(1)
    assert make(1) != make(2)
    assert make(1) != ResponseFinal(1)
    assert repr(make(1)) == shown.format(ALL)


def test_what_is_not_said_is_usual() -> None:
    assert Request(1, "k", ALL, "body") == Request(1, "k", ALL, "body", None, 0x0D, None)
    assert Response(1, "k", "body") == Response(1, "k", "body", 0x0D, None)
    assert ResponseFinal(1) == ResponseFinal(1, 0x0D)
