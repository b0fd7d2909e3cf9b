"""What access rules and filters make of the messages of each neighbour: judged once for each key, counted, told.

The space asks it about control messages, queries and answers; a node asks it when it makes a route, so that samples
pay nothing. Without rules there is no guard, and nobody asks. The programs of this process are not judged.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from elea.model.encoding import Encoding
from elea.model.errors import AccessDenied, DecodeError
from elea.model.limits import CACHED_KEY_CHARS, CACHED_ROUTES
from elea.model.logger import logger
from elea.model.node_id import NodeId
from elea.model.values import value_class
from elea.space.access import STORE, STORE_VERBS, Access, AccessRules, Action, Combination, Verdict, request_action
from elea.space.face import Entity, Face, Flow, Interest, InterestMode, Kinds, Region, Subject
from elea.space.interception import Downsampling, LowPass, Sampler, size_limit
from elea.space.questions import AnswerBody, ErrorBody, QueryBody, ReplyBody
from elea.space.way import Encoder
from elea.wire.details import unpack

__all__ = ["Guard", "GuardRules", "Sieve", "attachment_size"]

_log = logger("elea.space")

DECLARED: Final = {
    Entity.SUBSCRIBER: Action.DECLARE_SUBSCRIBER,
    Entity.QUERYABLE: Action.DECLARE_QUERYABLE,
    Entity.TOKEN: Action.LIVELINESS_TOKEN,
}

UPDATES: Final = (Action.PUT, Action.DELETE)
T = TypeVar("T")

INGRESS: Final = Flow.INGRESS
EGRESS: Final = Flow.EGRESS


@value_class
class GuardRules:
    """Everything that is said of what may pass."""

    access: AccessRules | None = None
    downsampling: tuple[Downsampling, ...] = ()
    low_pass: tuple[LowPass, ...] = ()

    def __bool__(self) -> bool:
        return self.access is not None or bool(self.downsampling or self.low_pass)


class Sieve:
    """Which messages on one key go through: not too many a second, and none too large."""

    __slots__ = ("_guard", "limit", "name", "samplers")

    def __init__(self, guard: Guard, samplers: tuple[Sampler, ...], limit: int | None, name: str) -> None:
        self._guard = guard
        self.samplers = samplers
        self.limit = limit
        self.name = name

    def passes(self, size: int) -> bool:
        """Whether a message with so many bytes of payload and attachment goes through; counted if not."""
        samplers = self.samplers
        if samplers:
            now = self._guard.now()
            for sampler in samplers:
                if not sampler.passes(now):
                    self._guard.drop("downsampling", self.name)
                    return False
        if self.limit is not None and size > self.limit:
            self._guard.drop("low_pass_filter", self.name)
            return False
        return True


class _Judged:
    """What is known of one neighbour."""

    __slots__ = ("answered", "asked", "combinations", "interfaces", "protocol", "samplers", "sieves", "verdicts")

    def __init__(self, combinations: tuple[Combination, ...], interfaces: tuple[str, ...], protocol: str) -> None:
        self.combinations = combinations
        self.interfaces = interfaces
        self.protocol = protocol
        self.verdicts: dict[tuple[int, str], bool] = {}
        self.samplers: dict[tuple[int, Flow, int], Sampler] = {}
        self.sieves: dict[tuple[int, str], Sieve | None] = {}
        # Queries (key, parameters) and answers (key) that are allowed and that no filter is about, inward and outward:
        # there are many, and looking again takes as long as a tenth of a get.
        self.asked: tuple[set[tuple[str, str]], set[tuple[str, str]]] = (set(), set())
        self.answered: tuple[set[str], set[str]] = (set(), set())


class Guard:
    """The rules of a node at work.

    Args:
        now: seconds that only grow.
        interfaces_of: the network interfaces that a neighbour's link goes through.
    """

    def __init__(
        self,
        rules: GuardRules,
        *,
        now: Callable[[], float],
        interfaces_of: Callable[[Subject], Iterable[str]] = lambda _: (),
    ) -> None:
        self.rules = rules
        self.now = now
        self.denied: dict[tuple[str, str], int] = {}
        """Messages and declarations that were denied, by action and flow."""
        self.dropped: dict[str, int] = {}
        """Messages that a filter held back, by its name in the configuration."""
        self.filtering: dict[Encoder, Encoder] = {}
        """What looks at samples in front of the encoder of a dialect; one for each."""
        self._access = None if rules.access is None else Access(rules.access)
        scopes = [*(one.scope for one in rules.downsampling), *(one.scope for one in rules.low_pass)]
        self._uses_interfaces = any(scope.interfaces for scope in scopes) or (
            self._access is not None and self._access.uses_interfaces
        )
        self._interfaces_of = interfaces_of
        self._judged: dict[Face, _Judged] = {}

    # -- verdicts -----------------------------------------------------------------------------------------------------

    def allows(self, face: Face, flow: Flow, action: Action, key: str) -> bool:
        """Whether a neighbour may do something with a key expression, or have it done to it; nothing is counted."""
        if self._access is None or face.region is Region.LOCAL:
            return True
        judged = self._of(face)
        name = (flow * 16 + action, key)
        found = judged.verdicts.get(name)
        if found is None:
            found = self._access.judge(judged.combinations, flow, action, key).allowed
            if len(key) <= CACHED_KEY_CHARS:
                if len(judged.verdicts) >= CACHED_ROUTES:
                    judged.verdicts.clear()
                judged.verdicts[name] = found
        return found

    def allows_every(self, face: Face, action: Action, key: str) -> bool:
        """Whether a neighbour may do that with each key of an expression: what a store makes of an update of many.

        Counted as a denial if not. Without wildcards the same as what `allows` says.
        """
        if self._access is None or face.region is Region.LOCAL or "*" not in key:
            return True
        if self._access.judge(self._of(face).combinations, INGRESS, action, key, every=True).allowed:
            return True
        self.deny(face, INGRESS, action, key)
        return False

    def check(self, face: Face, flow: Flow, action: Action, key: str) -> bool:
        """The same for a message: a denial is counted and told."""
        if self.allows(face, flow, action, key):
            return True
        self.deny(face, flow, action, key)
        return False

    def deny(self, face: Face, flow: Flow, action: Action, key: str, count: int = 1) -> None:
        """Count something that was denied, and say so the 1st, 2nd, 4th … time."""
        name = (action.label, flow.label)
        before = self.denied.get(name, 0)
        self.denied[name] = before + count
        if (before + count).bit_length() > before.bit_length():
            subject = face.subject
            _log.warning(
                "denied: action=%s flow=%s key=%s user=%s certificate=%s node=%s link=%s denied=%d rules=%s",
                action.label, flow.label, key[:200], subject.user, subject.certificate, NodeId(subject.node_id),
                subject.link, before + count, ",".join(self.explain(face, flow, action, key).rules) or "default",
            )  # fmt: skip

    def explain(self, face: Face, flow: Flow, action: Action, key: str) -> Verdict:
        """Whether it may, and which rules say so."""
        if self._access is None or face.region is Region.LOCAL:
            return Verdict(True)
        return self._access.judge(self._of(face).combinations, flow, action, key)

    def forget(self, face: Face) -> None:
        """A neighbour has gone."""
        self._judged.pop(face, None)

    def _of(self, face: Face) -> _Judged:
        found = self._judged.get(face)
        if found is None:
            if len(self._judged) >= CACHED_ROUTES:  # a request may be judged after its neighbour has gone
                self._judged.clear()
            subject = face.subject
            interfaces = tuple(self._interfaces_of(subject)) if self._uses_interfaces else ()
            fitting = () if self._access is None else self._access.combinations(subject, interfaces)
            found = self._judged[face] = _Judged(fitting, interfaces, subject.link.partition("/")[0])
        return found

    # -- messages of the space ----------------------------------------------------------------------------------------

    def may_declare(self, face: Face, entity: Entity, key: str) -> bool:
        """Whether a neighbour's declaration is taken."""
        return self.check(face, INGRESS, DECLARED[entity], key)

    def may_hear(self, face: Face, entity: Entity, key: str) -> bool:
        """Whether a neighbour is told of a declaration."""
        return self.allows(face, EGRESS, DECLARED[entity], key)

    def takes_interest(self, face: Face, flow: Flow, message: Interest) -> bool:
        """Whether an interest is taken, or sent; only those in tokens are judged."""
        if not message.kinds & Kinds.TOKENS:
            return True
        is_query = message.mode is InterestMode.CURRENT
        action = Action.LIVELINESS_QUERY if is_query else Action.DECLARE_LIVELINESS_SUBSCRIBER
        return self.check(face, flow, action, "**" if message.key is None else message.key)

    def takes_query(self, face: Face, flow: Flow, key: str, body: QueryBody) -> bool:
        """Whether a query is taken from a neighbour, or passed on to it."""
        judged = self._judged.get(face)
        name = (key, body.parameters)
        if judged is not None and name in judged.asked[flow is EGRESS]:
            return True
        if face.region is Region.LOCAL:
            return True
        asked = request_action(key, body.parameters)
        if asked is not None and not self.check(face, flow, *asked):
            return False
        if asked is not None and flow is INGRESS and asked[0] in UPDATES and not self.allows_every(face, *asked):
            return False
        sieve = self.sieve(face, flow, Action.QUERY, key)
        if sieve is None:
            if len(key) + len(body.parameters) <= CACHED_KEY_CHARS:
                _remember(self._of(face).asked[flow is EGRESS], name)
            return True
        return sieve.passes(len(body.payload or b"") + len(body.attachment or b""))

    def refusal(self, key: str, body: QueryBody) -> ErrorBody | None:
        """What a client of the store is told whose request was denied; others hear nothing, as in eclipse-zenoh."""
        asked = request_action(key, body.parameters)
        if asked is None or not _is_request(key):
            return None
        error = AccessDenied(asked[0].label, asked[1])
        form = {"action": error.action, "key": error.key, "error": "AccessDenied", "text": str(error)}
        return ErrorBody(json.dumps(form, separators=(",", ":")).encode(), Encoding.APPLICATION_JSON)

    def takes_answer(self, face: Face, flow: Flow, key: str, body: AnswerBody) -> bool:
        """Whether an answer is taken from a neighbour, or passed on to it.

        Those to the store's requests are answered as far as the request was allowed: the store judges each sample.
        """
        judged = self._judged.get(face)
        if judged is not None and key in judged.answered[flow is EGRESS]:
            return True
        if face.region is Region.LOCAL or not key:
            return True  # without a key: an error of a node on the way
        if not (flow is EGRESS and _is_request(key)) and not self.check(face, flow, Action.REPLY, key):
            return False
        sieve = self.sieve(face, flow, Action.REPLY, key)
        if sieve is None:
            if len(key) <= CACHED_KEY_CHARS:
                _remember(self._of(face).answered[flow is EGRESS], key)
            return True
        return sieve.passes(body_size(body))

    # -- filters ------------------------------------------------------------------------------------------------------

    def sieve(self, face: Face, flow: Flow, action: Action, key: str) -> Sieve | None:
        """What messages on a key go through, if any filter is about them."""
        rules = self.rules
        if face.region is Region.LOCAL or not (rules.downsampling or rules.low_pass):
            return None
        judged = self._of(face)
        name = (flow * 16 + action, key)
        if name in judged.sieves:
            return judged.sieves[name]
        found = self._sieve(judged, flow, action, key)
        if len(key) <= CACHED_KEY_CHARS:
            if len(judged.sieves) >= CACHED_ROUTES:
                judged.sieves.clear()
            judged.sieves[name] = found
        return found

    def _sieve(self, judged: _Judged, flow: Flow, action: Action, key: str) -> Sieve | None:
        fits = (flow, action, judged.interfaces, judged.protocol)
        samplers: list[Sampler] = []
        for number, item in enumerate(self.rules.downsampling):
            rate = item.rate_of(key) if item.scope.fits(*fits) else None
            if rate is not None:
                place = (number, flow, rate)
                if place not in judged.samplers:
                    judged.samplers[place] = Sampler(item.rates[rate].hertz)
                samplers.append(judged.samplers[place])
        limit = size_limit([one for one in self.rules.low_pass if one.scope.fits(*fits)], key)
        if not samplers and limit is None:
            return None
        return Sieve(self, tuple(samplers), limit, f"{action.label} {flow.label} {key[:200]}")

    def drop(self, reason: str, name: str) -> None:
        """Count a message that a filter held back; said the 1st, 2nd, 4th … time."""
        count = self.dropped[reason] = self.dropped.get(reason, 0) + 1
        if count & (count - 1) == 0:
            _log.warning("message filtered: reason=%s message=%s filtered=%d", reason, name, count)


def body_size(body: AnswerBody) -> int:
    """Bytes of payload and attachment of an answer."""
    if isinstance(body, bytes):
        return len(body)
    size = len(body.payload)
    if isinstance(body, ReplyBody):
        size += attachment_size(body.meta)
    return size


def attachment_size(meta: bytes | None) -> int:
    """Bytes of the attachment in packed details; of details that make no sense, all."""
    if meta is None:
        return 0
    try:
        return len(unpack(meta).attachment or b"")
    except DecodeError:
        return len(meta)


def _is_request(key: str) -> bool:
    return key.startswith(STORE) and key[len(STORE) :].partition("/")[0] in STORE_VERBS


def _remember(known: set[T], name: T) -> None:
    if len(known) >= CACHED_ROUTES:
        known.clear()
    known.add(name)
