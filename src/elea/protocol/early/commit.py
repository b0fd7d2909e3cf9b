"""Commit mode: how far a node may run ahead of the results of its declarations.

Spec: zenoh-2018 Z18-DCL-12 and DEC-26.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["MaySend", "may_send", "tolerates_commit"]


class MaySend(NamedTuple):
    """What a declaring node may send now."""

    declaration: bool
    commit: bool


def may_send(mode: int, unanswered: int) -> MaySend:
    """What may follow when `unanswered` commits wait for their result; `mode` is that of the other node.

    >>> may_send(1, 1)
    MaySend(declaration=True, commit=False)
    """
    return MaySend(declaration=unanswered <= mode, commit=unanswered < _most(mode))


def tolerates_commit(mode: int, unanswered: int) -> bool:
    """Whether a receiver of own commit mode `mode` takes one more commit; beyond that it closes with 255.

    It is one more generous than a sender may be, because the papers can be read either way (DEC-26).
    """
    return unanswered <= _most(mode)


def _most(mode: int) -> int:
    return max(1, mode)
