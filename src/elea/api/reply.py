"""What a query gets back; compiled where that is possible."""

from __future__ import annotations

from elea.api.identity import EntityGlobalId, ZenohId
from elea.api.instrumentation import TimestampStack
from elea.api.sample import Sample
from elea.api.zbytes import ZBytes
from elea.model.encoding import Encoding
from elea.model.values import mypyc_attr

__all__ = ["Reply", "ReplyError"]


class ReplyError:
    """A reply that is no sample: a queryable failed, or time ran out."""

    __slots__ = ("_encoding", "_payload", "_stack")

    def __init__(
        self, payload: bytes, encoding: Encoding = Encoding.ZENOH_BYTES, stack: TimestampStack | None = None
    ) -> None:
        self._payload = payload
        self._encoding = encoding
        self._stack = stack

    @property
    def payload(self) -> ZBytes:
        """What went wrong, in the words of who answered."""
        return ZBytes(self._payload)

    @property
    def encoding(self) -> Encoding:
        """What the payload is."""
        return self._encoding

    @property
    def timestamp_stack(self) -> TimestampStack | None:
        """The timestamps it has collected on its way, if that was asked for."""
        return self._stack

    def __repr__(self) -> str:
        return f"ReplyError(payload={self._payload!r}, encoding={str(self._encoding)!r})"


@mypyc_attr(acyclic=True)
class Reply:
    """One answer to a query: a sample or an error.

    >>> reply = Reply(Sample.of("a", b"1"))
    >>> reply.ok is reply.result, reply.err
    (True, None)
    """

    __slots__ = ("_replier", "_result")

    def __init__(
        self, result: Sample | ReplyError, replier_id: EntityGlobalId | tuple[bytes, int] | None = None
    ) -> None:
        self._result = result
        self._replier = replier_id

    @property
    def result(self) -> Sample | ReplyError:
        """The sample or the error."""
        return self._result

    @property
    def ok(self) -> Sample | None:
        """The sample, if it is one."""
        return self._result if isinstance(self._result, Sample) else None

    @property
    def err(self) -> ReplyError | None:
        """The error, if it is one."""
        return self._result if isinstance(self._result, ReplyError) else None

    @property
    def replier_id(self) -> EntityGlobalId | None:
        """Who answered; nobody, if time ran out here."""
        who = self._replier
        if isinstance(who, tuple):  # as it came: few want to know
            who = self._replier = EntityGlobalId(ZenohId(who[0]), who[1])
        return who

    def __repr__(self) -> str:
        return f"Reply(result={self._result!r}, replier_id={self.replier_id!r})"
