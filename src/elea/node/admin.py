"""The admin space: what a node tells of itself to whoever asks, and its counters. Spec: zenoh-1 section 19.

Answers are made when asked for, from what the space, the links and their outboxes know at that moment; nothing is kept
here. Two queryables: `@/<id>/<role>/**` for everybody, if the configuration says so, with the layout and the JSON of
eclipse-zenoh; and `@/<id>/session/**` for the process itself, always.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from elea import __version__
from elea.io.addresses import interfaces_of_address
from elea.io.dispatch import Mailbox
from elea.io.link import Link
from elea.model import keyexpr
from elea.model.details import Details
from elea.model.encoding import Encoding
from elea.model.keytext import cover
from elea.model.node_id import NodeId
from elea.model.qos import Role
from elea.node.dialect import DEFAULT
from elea.node.localface import Asked
from elea.node.openmetrics import OpenMetrics
from elea.space.face import Response
from elea.space.questions import ReplyBody
from elea.space.regions import is_north
from elea.space.snapshot import Snapshot, Sources
from elea.wire.details import pack

if TYPE_CHECKING:
    from elea.model.selector import Parameters
    from elea.node.connection import Connection
    from elea.node.links import Links
    from elea.node.node import Node
    from elea.space.face import Face

__all__ = ["METRICS", "Admin", "interface_names", "metrics"]

JSON: Final = Encoding.APPLICATION_JSON
TEXT: Final = Encoding.TEXT_PLAIN
METRICS: Final = Encoding("application/openmetrics-text; version=1.0.0; charset=utf-8")
GZIPPED: Final = Encoding(f"{METRICS};content-encoding=gzip")
VERSION: Final = f"elea v{__version__}"

Answer = tuple[str, Callable[[], tuple[bytes, Encoding]]]
"""A key below the node's own, and what makes its value."""


def interface_names(link: Link) -> tuple[str, ...]:
    """The network interfaces a link goes through: those that have its own address."""
    return interfaces_of_address(link.local)


class Admin:
    """The admin space of one node."""

    def __init__(self, node: Node, links: Links, *, enabled: bool, read: bool, metadata: object = None) -> None:
        """Begin to answer.

        Args:
            enabled: whether others are answered at all.
            read: whether they may read; if not they are answered with nothing.
            metadata: what the configuration says of this node, for people.
        """
        self._node = node
        self._links = links
        self._read = read
        self._metadata = metadata
        self._id = str(NodeId(node.node_id))
        if enabled:
            box = Mailbox(lambda asked: self._answer(asked, str(node.role), self._public))
            node.local.answer(f"@/{self._id}/{node.role}/**", box, complete=False)
        box = Mailbox(lambda asked: self._answer(asked, "session", self._session))
        node.local.answer(f"@/{self._id}/session/**", box, complete=False, elsewhere=False)

    def _answer(self, asked: Asked, below: str, found: Callable[[Parameters], Iterator[Answer]]) -> None:
        from elea.model.selector import Parameters

        request = asked.request
        try:
            parameters = Parameters(request.body.parameters)
            for name, value in found(parameters):
                key = f"@/{self._id}/{below}{name}"
                if keyexpr.intersects(request.key, key):
                    payload, encoding = value()
                    body = ReplyBody(pack(Details(encoding=encoding)), payload)
                    asked.respond(Response(request.id, key, body, request.qos, (self._node.node_id, 0)))
        finally:
            asked.done()

    # -- for everybody ------------------------------------------------------------------------------------------------

    def _public(self, parameters: Parameters) -> Iterator[Answer]:
        if not self._read:
            return
        yield "", lambda: _json(self._root())
        yield "/metrics", lambda: self._metrics(parameters)
        filters = self._node.filters
        if filters is not None:  # not in eclipse-zenoh, which has none
            yield "/predicates", lambda: _json(filters.form())
        with self._node.lock:
            snapshot = self._node.space.snapshot()
        for name, nodes in self._graphs(snapshot):
            yield f"/linkstate/{name}", lambda nodes=nodes: (_graph(nodes), TEXT)  # type: ignore[misc]
        for kind, entities, declared in (
            ("subscriber", snapshot.subscribers, True),
            ("queryable", snapshot.queryables, True),
            ("token", snapshot.tokens, True),
            ("publisher", snapshot.publishers, False),
            ("querier", snapshot.queriers, False),
        ):
            for key, sources in list(entities.items()):
                yield f"/{kind}/{cover(key)}", lambda s=sources, d=declared: _json(self._sources(s, d))  # type: ignore[misc]

    def _root(self) -> object:
        return {
            "locators": self._links.locators(),
            "metadata": self._metadata,
            "plugins": {},
            "sessions": [self._neighbour(connection, session) for connection, session in _open(self._links)],
            "version": VERSION,
            "zid": self._id,
        }

    def _neighbour(self, connection: Connection, session: Face) -> object:
        name = connection.dialect.name
        return {
            **({} if name == DEFAULT else {"dialect": name}),
            "links": [{"dst": connection.link.remote, "src": connection.link.local}],
            "peer": str(NodeId(session.subject.node_id)),
            "region": self._region(session),
            "shm": False,
            "weight": None,
            "whatami": str(session.subject.role),
        }

    def _region(self, session: Face) -> str:
        return "north" if is_north(self._node.role, session.region) else f"south:0:{session.subject.role}"

    def _sources(self, sources: Sources, declared: bool) -> object:
        """Who declared something. Our own programs count as clients, and for those south of us we stand ourselves."""
        by_role = {Role.ROUTER: sources.routers, Role.PEER: sources.peers, Role.CLIENT: sources.clients}
        own = self._node.node_id
        mine = own in by_role[self._node.role]
        found = {role: [id for id in ids if id != own] for role, ids in by_role.items()}
        south = mine or found[Role.CLIENT] or (self._node.role is Role.ROUTER and found[Role.PEER])
        if mine:
            found[Role.CLIENT].append(own)
        if declared and south and self._node.role is not Role.CLIENT:
            found[self._node.role].insert(0, own)
        names = {"routers": Role.ROUTER, "peers": Role.PEER, "clients": Role.CLIENT}
        return {name: [str(NodeId(id)) for id in found[role]] for name, role in names.items()}

    def _graphs(self, snapshot: Snapshot) -> Iterator[tuple[str, list[str]]]:
        """The nodes of each region, ourselves first; a client keeps no such thing."""
        role = self._node.role
        if role is Role.CLIENT:
            return
        neighbours = [(is_north(role, s.region), s) for s in snapshot.sessions]
        yield "north", [self._id, *(str(NodeId(s.node_id)) for north, s in neighbours if north)]
        if role is Role.ROUTER:
            peers = (str(NodeId(s.node_id)) for _, s in neighbours if s.role is Role.PEER)
            yield "south:0:peer", [self._id, *peers]

    def _metrics(self, parameters: Parameters) -> tuple[bytes, Encoding]:
        text = metrics(self._node, self._links, descriptors=parameters.get("descriptors") != "false").encode()
        if parameters.get("compression") == "false":
            return text, METRICS
        import gzip  # not with the module, because few nodes are ever asked for this

        return gzip.compress(text, mtime=0), GZIPPED

    # -- for ourselves ------------------------------------------------------------------------------------------------

    def _session(self, parameters: Parameters) -> Iterator[Answer]:
        import zlib  # as gzip above

        for connection, session in _open(self._links):
            name = f"/transport/unicast/{NodeId(session.subject.node_id)}"
            facts = {
                "zid": str(NodeId(session.subject.node_id)),
                "whatami": str(session.subject.role),
                "is_qos": session.has_priorities,
                "is_shm": False,
            }
            yield name, lambda facts=facts: _json(facts)  # type: ignore[misc]
            link = connection.link
            number = zlib.crc32(f"{link.local} {link.remote}".encode())
            yield f"{name}/link/{number}", lambda c=connection, s=session: _json(_link(c, s))  # type: ignore[misc]


def _open(links: Links) -> list[tuple[Connection, Face]]:
    return [(c, c.face) for c in list(links.connections) if c.face is not None]


def _link(connection: Connection, session: Face) -> object:
    link, qos = connection.link, session.has_priorities
    return {
        "src": link.local,
        "dst": link.remote,
        "group": None,
        "mtu": link.mtu,
        "is_streamed": link.streamed,
        "interfaces": list(interface_names(link)),
        "auth_identifier": None,
        "priorities": {"start": "Control", "end": "Background"} if qos else None,
        "reliability": ("Reliable" if link.reliable else "BestEffort") if qos else None,
    }


def _json(value: object) -> tuple[bytes, Encoding]:
    import json  # as gzip above

    return json.dumps(value, separators=(",", ":")).encode(), JSON


def _graph(nodes: list[str]) -> bytes:
    lines = [f'    {number} [ label = "{node}" ]' for number, node in enumerate(nodes)]
    return "\n".join(["graph {", *lines, "}", ""]).encode()


# -- counters ---------------------------------------------------------------------------------------------------------


_LINK: Final[Mapping[str, str]] = {
    "sent_batches": "Batches written.",
    "sent_bytes": "Bytes written.",
    "sent_messages": "Network messages written.",
    "waits": "Messages that had to wait for room.",
    "memory_payloads": "Payloads laid in shared memory.",
    "memory_bytes": "Bytes of them.",
    "memory_full": "Payloads that found it full and went through the link.",
    "received_batches": "Batches read.",
    "received_bytes": "Bytes read.",
    "received_frames": "Frames read.",
    "received_fragments": "Fragments read.",
    "duplicates": "Frames dropped because they came late or twice.",
    "missing_numbers": "Sequence numbers passed over; some senders skip one before fragments.",
    "lost_fragments": "Fragments whose message never became whole.",
    "ignored_batches": "Session messages without meaning.",
    "unroutable_samples": "Samples dropped because their key makes no sense.",
    "ignored_messages": "Control messages whose key makes no sense.",
}
"""What faces count, and what it means; one that does not count something has none of it."""

_EARLY: Final[Mapping[str, str]] = {
    "received_samples": "Samples read.",
    "resent_messages": "Messages sent again.",
    "oversized_messages": "Messages that no packet or row of fragments can carry, dropped.",
    "lost_acknowledgements": "Acknowledgements and repetitions that the link had no room for.",
    "round_trip_us": "Microseconds that a message and its answer take.",
    "read_only_samples": "Samples of properties and meta resources, dropped.",
    "copied_samples": "Samples that came once more for another subscriber of this node.",
    "not_kept_samples": "Durable samples that no storage takes.",
    "unpulled_samples_dropped": "Samples that gave way to newer ones before they were pulled.",
    "stored_samples_beyond_limit": "Stored samples that there was no room for.",
    "store_errors": "Answers of stores that were errors.",
    "unnamed_samples": "Samples whose key no early resource can have, dropped.",
    "unspoken_deletions": "Deletions, which the dialect has no word for.",
    "unspoken_declarations": "Declarations that the dialect has no words for.",
    "unspoken_queries": "Queries that the dialect has no words for.",
    "rejected_declarations": "Transactions that the other node refused.",
}
"""What only sessions of the early dialects count."""

GAUGES: Final = frozenset({"round_trip_us"})


def metrics(node: Node, links: Links, *, descriptors: bool = True) -> str:
    """All counters of a node as OpenMetrics text; `descriptors` are the lines that explain them."""
    text = OpenMetrics(descriptors=descriptors)
    text.family("zenoh_build", "info", "Zenoh build version.")
    text.sample(
        "zenoh_build_info", 1, local_id=str(NodeId(node.node_id)), local_whatami=str(node.role), version=VERSION
    )
    sessions = _open(links)
    text.family("elea_sessions", "gauge", "Open sessions.")
    for role in Role:
        text.sample("elea_sessions", sum(session.subject.role is role for _, session in sessions), role=str(role))
    counted = [(connection, session, session.counters()) for connection, session in sessions]
    for name, help in _LINK.items():
        text.family(f"elea_link_{name}", "counter", help)
        for connection, session, counters in counted:
            text.sample(f"elea_link_{name}_total", counters.get(name, 0), **_labels(connection, session))
    for name, help in _EARLY.items():
        counting = [(one, face, counters[name]) for one, face, counters in counted if name in counters]
        if counting:
            kind = "gauge" if name in GAUGES else "counter"
            text.family(f"elea_link_{name}", kind, help)
            suffix = "" if name in GAUGES else "_total"
            for connection, session, count in counting:
                text.sample(f"elea_link_{name}{suffix}", count, **_labels(connection, session))
    text.family("elea_link_dropped_messages", "counter", "Messages dropped on the way out.")
    for connection, session in sessions:
        outbox = connection.machine.outbox
        for reason, count in () if outbox is None else list(outbox.losses.counts.items()):
            labels = _labels(connection, session)
            text.sample("elea_link_dropped_messages_total", count, **labels, reason=reason)
    text.family("elea_dropped_messages", "counter", "Messages dropped, also on links that are gone.")
    for reason, count in links.dropped().items():
        text.sample("elea_dropped_messages_total", count, reason=reason)
    text.family("elea_ignored_messages", "counter", "Messages the space passed over.")
    from dataclasses import asdict  # not with the module: it brings `inspect`

    for reason, count in asdict(node.space.ignored).items():
        text.sample("elea_ignored_messages_total", count, reason=reason)
    text.family("elea_refused_sessions", "counter", "Sessions refused because there were too many.")
    text.sample("elea_refused_sessions_total", links.refused)
    loop = node.loop
    text.family("elea_takeovers", "counter", "Leaders of the loop held up by a handler.")
    text.sample("elea_takeovers_total", loop.takeovers)
    text.family("elea_spins", "counter", "Waits that began with a spin, by whether it paid.")
    text.sample("elea_spins_total", loop.spin.hits, result="hit")
    text.sample("elea_spins_total", loop.spin.misses, result="miss")
    text.family("elea_replaced_timestamps", "counter", "Timestamps too far ahead, replaced.")
    text.sample("elea_replaced_timestamps_total", 0 if node.stamper is None else node.stamper.replaced)
    memory = node.memory
    text.family("elea_memory_bytes", "gauge", "Bytes of messages in the making and requests that wait.")
    text.sample("elea_memory_bytes", memory.used)
    text.family("elea_memory_limit_bytes", "gauge", "What they may have in all.")
    text.sample("elea_memory_limit_bytes", memory.total)
    text.family("elea_memory_refusals", "counter", "Messages that found no room, or gave way to smaller holders.")
    text.sample("elea_memory_refusals_total", memory.refused, reason="full")
    text.sample("elea_memory_refusals_total", memory.revoked, reason="gave_way")
    text.family("elea_blocked_links", "gauge", "Links that take nothing now.")
    text.sample("elea_blocked_links", memory.blocked_links)
    guard = node.space.guard
    text.family("elea_denied", "counter", "Messages and declarations that access rules deny.")
    for (action, flow), count in () if guard is None else list(guard.denied.items()):
        text.sample("elea_denied_total", count, action=action, flow=flow)
    text.family("elea_filtered_messages", "counter", "Messages that down-sampling or a low-pass filter held back.")
    for reason, count in () if guard is None else list(guard.dropped.items()):
        text.sample("elea_filtered_messages_total", count, reason=reason)
    for meter in node.meters:
        meter(text)
    return str(text)


def _labels(connection: Connection, session: Face) -> dict[str, str]:
    name = connection.dialect.name
    return {
        **({} if name == DEFAULT else {"dialect": name}),
        "node": str(NodeId(session.subject.node_id)),
        "role": str(session.subject.role),
        "link": connection.link.remote,
    }
