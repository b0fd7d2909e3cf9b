"""Rules that a well-formed message of an early dialect can still break.

Codecs refuse what is no message; here is refused what no session may be told. Each rule has a name and a
prescribed reaction, the same in both dialects. Rules that need to know what was declared before (unknown
selections, conflicts) belong to the space. Spec: zenoh-2018 §5.7, §5.10, §5.12 and Z18-ERR-03.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, cast

from elea.model.errors import InvalidResource, RuleBroken
from elea.model.limits import MAX_DECLARED_ID, NODE_ID_BYTES
from elea.model.resource import Resource
from elea.protocol.early import shapes

__all__ = ["REACTIONS", "Terms", "check_declaration", "check_message", "check_packet", "declared_id"]

REACTIONS: Final[Mapping[str, str]] = {
    "ID_PARITY": "result-5",
    "ID_RANGE": "result-5",
    "PERIOD": "result-5",
    "RESOURCE_NAME": "result-5",
    "COMMIT_IN_COMMITTED": "close-6",
    "COMMIT_NOT_LAST": "close-255",
    "SN_RANGE": "close-255",
    "UNSUPPORTED_CONDUIT": "close-255",
    "SYNCH_COUNT": "ignore",
    "MAX_SAMPLES": "close-5",
    "PULL_ID": "close-5",
    "PEER_ID": "close-5",
}
"""From each rule to what its breach brings about: a status in the result, a close reason, or nothing."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What a session has agreed on: bits of a serial number, and how many conduits this node receives on."""

    snsize: int = 14
    conduits: int = 1


def check_packet(decorated: shapes.DecoratedShape, terms: Terms) -> None:
    """Check a message together with its markers; raises RuleBroken."""
    message = decorated.message
    for marker in decorated.markers:
        kind = type(marker).__name__
        if kind == "Conduit" and _kind(message) not in _WITHOUT_CHANNEL:
            _check_conduit(cast(shapes.IdShape, marker).id, terms)
        elif kind == "Frag":
            _check_number(cast(shapes.FragShape, marker).snBase, "snBase", terms)
    check_message(message, terms)


def check_message(message: object, terms: Terms) -> None:
    """Check one message; raises RuleBroken.

    The declarations inside a Declare are not looked at: without the committed flag they count only when their
    commit comes, and it is their evaluation that calls `check_declaration`.
    """
    for rule in _MESSAGE_RULES.get(_kind(message), ()):
        rule(message, terms)


def check_declaration(declaration: object, *, committed: bool = False) -> None:
    """Check one declaration; raises RuleBroken, with the reaction of a committed one if it is."""
    rule = _DECLARATION_RULES.get(_kind(declaration))
    if rule is None:
        return
    try:
        rule(declaration)
    except RuleBroken as broken:
        if not committed:
            raise
        # Z18-DCL-05: what is committed already cannot be refused by a result, only by ending the session.
        raise RuleBroken(broken.rule, "close-6", broken.problem) from None


def declared_id(declaration: object) -> int:
    """The id a ResultDecl names when this declaration fails; 0 when it has none.

    Spec: of a binding, the id that exists already.
    """
    for field in ("rid", "id", "sid", "oldId"):
        id = getattr(declaration, field, None)
        if isinstance(id, int):
            return id
    return 0


# -- messages ------------------------------------------------------------------------------------------------


def _check_conduit(id: int, terms: Terms) -> None:
    if id >= terms.conduits:
        raise _broken("UNSUPPORTED_CONDUIT", f"conduit {id} is not among the {terms.conduits} supported")


def _check_number(sn: int, field: str, terms: Terms) -> None:
    if sn >> terms.snsize:
        raise _broken("SN_RANGE", f"{field} {sn} does not fit {terms.snsize} bits")


def _check_sn(message: object, terms: Terms) -> None:
    _check_number(cast(shapes.NumberedShape, message).sn, "sn", terms)


def _check_migrate(message: object, terms: Terms) -> None:
    migrate = cast(shapes.MigrateShape, message)
    _check_number(migrate.rchLastSN, "rchLastSN", terms)
    _check_number(migrate.bechLastSN, "bechLastSN", terms)


def _check_synch(message: object, terms: Terms) -> None:
    synch = cast(shapes.SynchShape, message)
    if synch.count is None:
        return
    if not synch.reliable:
        raise _broken("SYNCH_COUNT", "a best-effort channel holds nothing back, so it has no count")
    limit = (1 << (terms.snsize - 1)) - 1
    if not 0 < synch.count < limit:
        raise _broken("SYNCH_COUNT", f"count {synch.count} is not between 0 and {limit}")


def _check_pull(message: object, _: Terms) -> None:
    # Only the older dialect has the field; both have a class of this name.
    if getattr(message, "pullId", None) == 0:
        raise _broken("PULL_ID", "pullId is 0; pull sessions are numbered from 1")
    if cast(shapes.PullShape, message).maxSamples == 0:
        raise _broken("MAX_SAMPLES", "maxSamples is 0; leave it out to ask for everything")


def _check_open(message: object, _: Terms) -> None:
    _check_pid(cast(shapes.OpenShape, message).pid)


def _check_accept(message: object, _: Terms) -> None:
    # Only the acceptor's own id: an Accept with another openPid than ours is ignored, not answered.
    _check_pid(cast(shapes.AcceptShape, message).acceptPid)


def _check_pid(pid: bytes) -> None:
    if not 1 <= len(pid) <= NODE_ID_BYTES:
        raise _broken("PEER_ID", f"a node id has 1 to {NODE_ID_BYTES} octets, not {len(pid)}")


def _check_declare(message: object, _: Terms) -> None:
    declare = cast(shapes.DeclareShape, message)
    commits = [at for at, each in enumerate(declare.declarations) if _kind(each) == "CommitDecl"]
    if not commits:
        return
    if commits[0] != len(declare.declarations) - 1:
        raise _broken("COMMIT_NOT_LAST", f"declaration {commits[0]} is a commit and others follow it")
    if declare.committed:
        raise _broken("COMMIT_IN_COMMITTED", "declarations that are committed already cannot hold a commit")


# -- declarations --------------------------------------------------------------------------------------------


def _check_resource(declaration: object) -> None:
    resource = cast(shapes.ResourceShape, declaration)
    _check_id(resource.rid, parity=0)
    _check_name(resource.resource)


def _check_rid(declaration: object) -> None:
    _check_id(cast(shapes.ResourceShape, declaration).rid, parity=0)


def _check_sid(declaration: object) -> None:
    _check_id(cast(shapes.SelectionShape, declaration).sid, parity=1)


def _check_either(declaration: object) -> None:
    _check_id(cast(shapes.IdShape, declaration).id)


def _check_binding(declaration: object) -> None:
    binding = cast(shapes.BindingShape, declaration)
    _check_id(binding.oldId, parity=1)
    _check_id(binding.newId, parity=1)


def _check_subscriber(declaration: object) -> None:
    subscriber = cast(shapes.SubscriberShape, declaration)
    _check_id(subscriber.id)
    window = subscriber.params
    if window is not None and not 0 < window.duration < window.period:
        raise _broken("PERIOD", f"duration {window.duration} is not between 0 and period {window.period}")


def _check_id(id: int, *, parity: int | None = None) -> None:
    if id == 0:
        raise _broken("ID_PARITY", "id 0 is neither a resource nor a selection")
    if parity is not None and id % 2 != parity:
        kind = "selection ids are odd" if parity else "resource ids are even"
        raise _broken("ID_PARITY", f"{kind}, {id} is not")
    if id > MAX_DECLARED_ID:
        raise _broken("ID_RANGE", f"id {id} is above {MAX_DECLARED_ID}")


def _check_name(name: bytes) -> None:
    try:
        resource = Resource.parse(name.decode("ascii"))
    except (UnicodeDecodeError, InvalidResource) as error:
        raise _broken("RESOURCE_NAME", str(error)) from error
    # Z18-RES-06: under this name the properties of a resource are read, so nobody may declare it.
    if resource.path.endswith("/property"):
        raise _broken("RESOURCE_NAME", "names ending in /property are kept for the properties of resources")


def _broken(rule: str, problem: str) -> RuleBroken:
    return RuleBroken(rule, REACTIONS[rule], problem)


def _kind(value: object) -> str:
    # The name of the class, and not the class: each dialect has its own classes with the same names.
    return type(value).__name__


_WITHOUT_CHANNEL: Final = frozenset(
    {"Scout", "Hello", "Open", "Accept", "Close", "KeepAlive", "Ping", "Pong", "PingPong"}
)

_MESSAGE_RULES: Final[Mapping[str, tuple[Callable[[object, Terms], None], ...]]] = {
    "Open": (_check_open,),
    "Accept": (_check_accept,),
    "Declare": (_check_sn, _check_declare),
    "StreamData": (_check_sn,),
    "BatchedData": (_check_sn,),
    "WriteData": (_check_sn,),
    "Pull": (_check_sn, _check_pull),
    "Synch": (_check_sn, _check_synch),
    "AckNack": (_check_sn,),
    "Migrate": (_check_migrate,),
}

_DECLARATION_RULES: Final[Mapping[str, Callable[[object], None]]] = {
    "ResourceDecl": _check_resource,
    "PublisherDecl": _check_either,
    "SubscriberDecl": _check_subscriber,
    "SelectionDecl": _check_sid,
    "BindingDecl": _check_binding,
    "ForgetResourceDecl": _check_rid,
    "ForgetPublisherDecl": _check_either,
    "ForgetSubscriberDecl": _check_either,
    "ForgetSelectionDecl": _check_sid,
}
