"""The logs that a query reads, seen from the driver: which there are, how far they go, cursors, positions of times."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from elea.model import keyexpr
from elea.model.errors import NoLog, NotStored, StoreClosing, StoreError
from elea.model.node_id import NodeId
from elea.model.qos import ConsolidationMode, QueryTarget
from elea.model.timerange import TimeBound, TimeExpr, TimeRange
from elea.spark.brokerquery import refused
from elea.spark.brokers import Brokers
from elea.spark.offsets import Head
from elea.spark.sessions import answered, session_of, where

if TYPE_CHECKING:
    from elea.api.session import Session
    from elea.spark.options import ReadOptions

__all__ = ["Kept", "Logs"]

_log: Final = logging.getLogger("elea.spark")

DEFAULT: Final = "default"
"""The log for keys of no storage, which matches everything."""

FIND_SECONDS: Final = 5.0
"""How long a stream that runs waits to hear of new logs."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A log that keeps keys of the query."""

    log: str
    key_expr: str
    keys: tuple[str, ...] | None
    """The key expressions to look for; None if it keeps nothing else."""

    locator: str | None = None
    """Where its broker is; None if that is behind another one."""


class Logs:
    """What brokers keep of the key expressions of a query."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._timeout = options.request_timeout_ms / 1000
        self._session: Session = session_of(options)
        self._brokers = Brokers(options, self._session)
        self.cursor: str = options.cursor
        """The name of the cursor of this query."""
        self.cursors: dict[str, dict[str, int]] = {}
        """All cursors of each log, when it was found."""
        self.kept: dict[str, Kept] = {}
        self.away: dict[str, float] = {}
        """Logs whose broker was away when `heads` was called last, and for how many seconds."""
        told = self._brokers.ask(lambda: self._told(self._timeout, strict=True))
        self._keep(told)
        self._judge(told)

    def _judge(self, told: list[dict[str, Any]]) -> None:
        """Whether the keys that are wanted are kept; those of no log, or of none but `default`, are warned of.

        Raises:
            NoLog: none of them is.
        """
        names = ", ".join(sorted(f"{one['name']} ({one['key_expr']})" for one in told))
        if not self.kept:
            raise NoLog(",".join(self._options.key_exprs), where(self._options), names)
        storages = [one["key_expr"] for one in told if one["name"] != DEFAULT]
        for wanted in self._options.key_exprs:
            if not any(keyexpr.intersects(expr, wanted) for expr in storages):
                only = "; what was put there with a durability is in default" if DEFAULT in self.kept else ""
                _log.warning("no storage keeps %s: logs=%s%s", wanted, names, only)

    def find(self) -> None:
        """Ask all brokers what else they keep; who does not answer soon is asked another time.

        Raises:
            StoreError: two logs have one name.
        """
        self._keep(self._told(min(self._timeout, FIND_SECONDS), strict=False))

    def _keep(self, told: list[dict[str, Any]]) -> None:
        found: dict[str, Kept] = {}
        epochs: dict[str, str] = {}
        for facts in told:
            name, expr, epoch = facts["name"], facts["key_expr"], facts["epoch"]
            wanted = self._options.key_exprs
            if not any(keyexpr.intersects(expr, one) for one in wanted):
                continue
            if epochs.setdefault(name, epoch) != epoch:
                raise StoreError(
                    f"two logs called {name} keep keys of {','.join(wanted)}, of epochs {epoch} and {epochs[name]}; "
                    "give the storages of your brokers names of their own, or connect to one broker"
                )
            is_all = any(keyexpr.includes(one, expr) for one in wanted)
            self.cursors[name] = facts["cursors"]
            found[name] = Kept(name, expr, None if is_all else wanted, facts["locator"])
        # A log that nobody mentions is not gone: its broker may be away. Whether it is, `heads` finds out.
        self.kept = dict(sorted({**self.kept, **found}.items()))

    def _told(self, timeout: float, *, strict: bool) -> list[dict[str, Any]]:
        """The facts about all logs; if `strict`, an error instead of an answer is raised."""
        replies = self._session.get(
            "@store/info/**", target=QueryTarget.ALL, consolidation=ConsolidationMode.NONE, timeout=timeout
        )
        found = []
        for reply in replies:
            if reply.ok is None:
                if strict:
                    raise refused("@store/info/**", reply, self._options)
            else:
                facts = json.loads(reply.ok.payload.to_bytes())
                facts["locator"] = self._locator(str(reply.ok.key_expr))
                # The log for keys of no storage matches everything and is empty as a rule.
                if facts["name"] != DEFAULT or facts["end"]:
                    found.append(facts)
        return found

    def _locator(self, key: str) -> str | None:
        """The locator of the broker that has answered on `@store/info/<id>/<log>`."""
        return self._session._runtime.locator_of(NodeId.parse(key.split("/")[2]).data)

    def close(self) -> None:
        """Nothing is held open but the session of the process."""

    # -- heads and cursors

    def heads(self, *, wait: bool = True) -> dict[str, Head]:
        """How far each log goes now; those that nobody offers any more are missing.

        Args:
            wait: for brokers that are away. Otherwise their logs are missing, too, and are in `away`.

        Raises:
            BrokerAway: one has been away for too long.
        """
        found = {}
        self.away = {}
        for log in self.kept:
            try:
                facts = self._brokers.ask(partial(self._facts, log)) if wait else self._facts_now(log)
            except NotStored:
                continue
            if facts is not None:
                damaged = tuple((first, last) for first, last in facts.get("damaged", ()))
                found[log] = Head(log, facts["epoch"], facts["first"], facts["end"], damaged)
        return found

    def _facts(self, log: str) -> dict[str, Any]:
        with answered(self._options):
            found: dict[str, Any] = self._cursor(log).facts()
            return found

    def _facts_now(self, log: str) -> dict[str, Any] | None:
        """The same, or None if its broker is away: not being there is not being lost."""
        at = self.kept[log].locator
        links = self._brokers.now(at)
        if links is not None:
            try:
                return self._facts(log)
            except NotStored:
                if self._brokers.now(at) == links:
                    raise
            except StoreClosing:
                pass  # it is on its way out, or back by now
        self.away[log] = self._brokers.away(at)
        return None

    def hold(self, log: str, position: int) -> None:
        """Put the cursor of this query there: retention does not pass it."""
        try:
            with answered(self._options):
                self._cursor(log).move(position)
        except NotStored as error:
            _log.warning("cursor not moved: log=%s position=%d problem=%s", log, position, error)

    def _cursor(self, log: str) -> Any:
        from elea.api.cursor import Cursor

        kept = self.kept[log]
        return Cursor(self._session, kept.key_expr, self.cursor, self._timeout, log=log)

    # -- positions

    def position_at(self, log: str, time_ns: int) -> int:
        """The first position with a timestamp not before a time; the end if there is none."""
        return self._brokers.ask(partial(self._position_at, self.kept[log], log, time_ns))

    def _position_at(self, kept: Kept, log: str, time_ns: int) -> int:
        since = TimeRange(TimeBound(TimeExpr(time_ns)))
        reading = self._session.read(
            kept.key_expr, time=since, limit=1, timeout=self._timeout, log=log, keys=kept.keys, skip_damaged=True
        )
        with answered(self._options):
            for batch in reading:
                return int(batch.column("position")[0].as_py())
        return reading.end or 0

    def measure(self, log: str, start: int, end: int, octets: int) -> int:
        """The position up to which about so many octets lie on disk."""
        from elea.api.storecall import Call, query

        body = query(f"log={log};from={start};to={end};measure={octets}")
        key, timeout = self.kept[log].key_expr, self._timeout

        def ask() -> int:
            call = Call(self._session, "read", key, body, timeout=timeout, target=QueryTarget.ALL)
            with answered(self._options):
                return int(call.wait()["next"])

        return self._brokers.ask(ask)
