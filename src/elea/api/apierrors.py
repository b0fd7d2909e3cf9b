"""Errors that only the session API raises; they belong to the tree of `elea.model.errors`."""

from __future__ import annotations

from elea.model.errors import EleaError

__all__ = ["ChannelClosed", "InvalidValue", "QueryCancelled", "QueryDropped", "ReplyRefused", "refuse_stack"]


class InvalidValue(EleaError, ValueError):
    """A value of the API that cannot be: `what` names its type, `problem` says why."""

    def __init__(self, what: str, problem: str) -> None:
        super().__init__(f"invalid {what}: {problem}")
        self.what = what
        self.problem = problem


class ChannelClosed(EleaError):
    """Nothing is left in a channel and nothing more will come."""

    def __init__(self) -> None:
        super().__init__("channel is empty and closed")


class QueryDropped(EleaError):
    """A query that was dropped, or whose `with` block has ended, answers nothing any more."""

    def __init__(self) -> None:
        super().__init__("dropped query: it has been finished and takes no more replies")


class QueryCancelled(EleaError):
    """A query with a token that was cancelled before."""

    def __init__(self) -> None:
        super().__init__("query was cancelled: its cancellation token has been used; make a new one")


class ReplyRefused(EleaError, ValueError):
    """A reply on a key the query did not ask for."""

    def __init__(self, key_expr: str, query: str) -> None:
        super().__init__(
            f"reply on {key_expr!r} does not intersect the query {query!r}, which accepts matching keys only; "
            "get with accept_replies=ReplyKeyExpr.ANY to allow it"
        )
        self.key_expr = key_expr
        self.query = query


def refuse_stack(instrumentation: object) -> None:
    """Raise for a put that a store is asked to keep: it travels as a question, and others get it from the store.

    Raises:
        InvalidValue: it asks for timestamps.
    """
    if instrumentation is not None:
        raise InvalidValue("timestamp_instrumentation", "a put with a durability collects no timestamps; leave out one")
