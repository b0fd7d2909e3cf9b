"""Pull subscribers whose samples wait at the broker, where the dialect has words for that: a pull brings them.

What this process puts itself waits here, since it does not come back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from elea.api.pacedsubscriber import PacedSubscriber, Pull, check_count
from elea.api.sample import Sample
from elea.model.errors import OperationTimeout
from elea.model.keyexpr import KeyExpr
from elea.model.qos import Locality
from elea.space.face import Puller, PullingFace

if TYPE_CHECKING:
    from elea.api.session import Session
    from elea.content import SamplePredicate
    from elea.wire.details import RawSample

__all__ = ["WirePullSubscriber", "puller_of"]

H = TypeVar("H")

PULL_SECONDS: Final = 10.0
"""How long a pull waits for the broker, if it is not told."""

QOS: Final = 13
"""Of samples that a pull has brought: data, reliable, blocking."""


def puller_of(session: Session, key: str) -> Puller | None:
    """A subscriber at the one broker this session has; None if there are none, several, or that has no words for it."""
    node = session._node
    with node.lock:
        faces = [face for face in node.space.faces() if face is not node.local]
    if len(faces) != 1 or not isinstance(faces[0], PullingFace):
        return None
    return faces[0].puller(key)


class WirePullSubscriber(PacedSubscriber[H]):
    """A subscriber with mode `Pull` whose samples wait at the broker."""

    def __init__(
        self,
        session: Session,
        key_expr: KeyExpr,
        handler: object,
        mode: Pull,
        puller: Puller,
        where: SamplePredicate | None = None,
    ) -> None:
        self._puller = puller
        super().__init__(session, key_expr, handler, Locality.SESSION_LOCAL, mode, where)

    def pull(self, max_samples: int | None = None, *, timeout: float | None = None) -> list[Sample]:
        """Ask the broker for samples that wait there: so many at most, or as many as the mode says.

        Raises:
            OperationTimeout: it has not answered within `timeout` seconds, 10 if not given.
        """
        if self._gone:
            self._session._refuse(f"subscriber on {self._key_expr} is undeclared")
        most = self._max_samples if max_samples is None else max_samples
        check_count(most)
        if most is None or self.waiting < most:
            self._fetch(None if most is None else most - self.waiting, PULL_SECONDS if timeout is None else timeout)
        return super().pull(max_samples, timeout=timeout)

    def _fetch(self, most: int | None, timeout: float) -> None:
        if self._puller.is_over:
            again = puller_of(self._session, self._session._whole(str(self._key_expr)))
            if again is None:
                raise OperationTimeout(f"no broker to pull {self._key_expr} from")
            self._puller = again
        sink, channel = self._session._handler(None, "list")

        def done(found: list[tuple[str, bytes]]) -> None:
            self._add(found)
            sink.push(found)

        self._puller.pull(most, done)
        waited: Any = channel
        waited.recv(timeout=timeout)

    def _add(self, found: list[tuple[str, bytes]]) -> None:
        namespace = self._session._namespace
        samples: list[Sample] = []
        for key, payload in found:
            own = KeyExpr(key) if namespace is None else namespace.own_expr(KeyExpr(key))
            run: list[RawSample] = [(0, 0, b"", QOS, None, payload)]
            if own is not None and self._where is not None:
                run = self._where.chosen(str(own), run)
            samples += [Sample(own, raw) for raw in run if own is not None]
        with self._pacing:
            self._pacer.add_many(samples, 0)

    def _end(self) -> None:
        self._puller.close()
        super()._end()
