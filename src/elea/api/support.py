"""What a node does with each entry of a configuration: the one table that `elea check-config` and the node share.

An entry is acted on, refused with what to do instead, or without effect here because what it tunes does not exist;
then the node says so when it starts. `tests/unit/api/test_support.py` walks the whole schema and fails if an entry
has no row, or if a row has no entry. To build what is refused: move its row to `ACTED`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias, cast

from elea.api.configschema import SCHEMA
from elea.api.json5 import Json
from elea.api.kinds import Field, Section
from elea.api.storages import MANAGER
from elea.io.locator import nearest
from elea.model.errors import ConfigError
from elea.model.values import value_class

__all__ = ["ACTED", "IDLE", "REFUSED", "Refusal", "check_support", "leaves", "row_of", "without_effect"]

At: TypeAlias = Callable[[str], Json]
"""The value of a configuration at a path."""


@value_class
class Refusal:
    """A row of the table: what to do instead, and which values change nothing beside the default."""

    hint: str
    harmless: tuple[Json, ...] = (None, False)
    is_wanted: Callable[[Json], bool] | None = None
    """Whether a value asks for what is not built, where comparing it does not tell."""

    def applies(self, value: Json, default: Json) -> bool:
        if self.is_wanted is not None:
            return self.is_wanted(value)
        return value != default and value not in self.harmless


ACTED: Final = frozenset(
    """
    id metadata mode region_name namespace
    connect/timeout_ms connect/endpoints connect/exit_on_failure connect/retry
    listen/endpoints
    open/return_conditions/connect_scouted open/return_conditions/declares
    scouting/timeout scouting/delay
    scouting/multicast/enabled scouting/multicast/address scouting/multicast/interface scouting/multicast/ttl
    scouting/multicast/autoconnect scouting/multicast/autoconnect_strategy scouting/multicast/listen
    scouting/gossip/enabled scouting/gossip/multihop scouting/gossip/target scouting/gossip/autoconnect
    scouting/gossip/autoconnect_strategy
    timestamping/enabled
    queries_default_timeout
    routing/interests/timeout
    aggregation/subscribers aggregation/publishers
    transport/unicast/open_timeout transport/unicast/accept_timeout transport/unicast/accept_pending
    transport/unicast/max_sessions transport/unicast/lowlatency transport/unicast/qos/enabled
    transport/unicast/compression/enabled
    transport/link/protocols
    transport/link/tx/sequence_number_resolution transport/link/tx/lease transport/link/tx/keep_alive
    transport/link/tx/batch_size
    transport/link/tx/queue/congestion_control/drop/wait_before_drop
    transport/link/tx/queue/congestion_control/drop/max_wait_before_drop_fragments
    transport/link/tx/queue/congestion_control/block/wait_before_close
    transport/link/rx/max_message_size transport/link/rx/spin transport/link/rx/memory
    transport/link/tls/root_ca_certificate transport/link/tls/listen_private_key
    transport/link/tls/listen_certificate transport/link/tls/enable_mtls transport/link/tls/connect_private_key
    transport/link/tls/connect_certificate transport/link/tls/verify_name_on_connect
    transport/shared_memory/enabled transport/shared_memory/transport_optimization/enabled
    transport/shared_memory/transport_optimization/pool_size
    transport/shared_memory/transport_optimization/message_size_threshold
    transport/auth/usrpwd/user transport/auth/usrpwd/password transport/auth/usrpwd/dictionary_file
    adminspace/enabled adminspace/permissions/read adminspace/permissions/write
    access_control downsampling low_pass_filter qos/publication timestamping/drop_future_timestamp
    plugins
    """.split()
)
"""Entries that a node follows."""

_FILES: Final = "write the PEM text to a file and name it in the entry without _base64"
_BUFFERS: Final = "write it behind the locator, such as tcp/[::]:7447#so_sndbuf=65536"
_GROUPS: Final = "there are no multicast links; use tcp, tls, udp or unixsock-stream to one node"
_PUBKEY: Final = "use transport/auth/usrpwd, or certificates: tls links with transport/link/tls/enable_mtls"
_ONCE: Final = "a locator that cannot be listened at is an error at the start; let a supervisor start the node again"

REFUSED: Final[dict[str, Refusal]] = {
    "gateway": Refusal(
        "leave it out: a node is no gateway between regions",
        is_wanted=lambda value: cast("dict[str, Json]", value)["south"] not in (None, "auto"),
    ),
    "listen/timeout_ms": Refusal(_ONCE, (None, 0)),
    "listen/exit_on_failure": Refusal(_ONCE, (None, True)),
    "listen/retry": Refusal(_ONCE),
    "routing/router/linkstate/transport_weights": Refusal("routers form no network here: leave it out", ([],)),
    "routing/peer": Refusal(
        'peers are linked to each other directly: leave it out, or write {mode: "peer_to_peer"}',
        (None, {}, {"mode": "peer_to_peer"}),
    ),
    "qos/network": Refusal("write it into qos/publication of the nodes that publish", ([],)),
    "transport/unicast/max_links": Refusal("a session has one link: leave it out"),
    "transport/multicast/join_interval": Refusal(_GROUPS),
    "transport/multicast/max_sessions": Refusal(_GROUPS),
    "transport/multicast/qos/enabled": Refusal(_GROUPS),
    "transport/multicast/compression/enabled": Refusal(_GROUPS),
    "transport/link/tls/close_link_on_expiration": Refusal(
        "links outlive their certificates; end sessions by restarting the broker"
    ),
    "transport/link/tls/so_sndbuf": Refusal(_BUFFERS),
    "transport/link/tls/so_rcvbuf": Refusal(_BUFFERS),
    "transport/link/tls/root_ca_certificate_base64": Refusal(_FILES),
    "transport/link/tls/listen_private_key_base64": Refusal(_FILES),
    "transport/link/tls/listen_certificate_base64": Refusal(_FILES),
    "transport/link/tls/connect_private_key_base64": Refusal(_FILES),
    "transport/link/tls/connect_certificate_base64": Refusal(_FILES),
    "transport/link/tcp/so_sndbuf": Refusal(_BUFFERS),
    "transport/link/tcp/so_rcvbuf": Refusal(_BUFFERS),
    "transport/link/unixpipe/file_access_mask": Refusal("there are no pipe links; use unixsock-stream"),
    "transport/shared_memory/transport_optimization/messages": Refusal(
        "every large payload goes that way: write [], or all of put, query, reply",
        (["put", "delete", "query", "reply"], ["put", "query", "reply", "delete"]),
    ),
    "transport/auth/pubkey/public_key_pem": Refusal(_PUBKEY),
    "transport/auth/pubkey/private_key_pem": Refusal(_PUBKEY),
    "transport/auth/pubkey/public_key_file": Refusal(_PUBKEY),
    "transport/auth/pubkey/private_key_file": Refusal(_PUBKEY),
    "transport/auth/pubkey/key_size": Refusal(_PUBKEY),
    "transport/auth/pubkey/known_keys_file": Refusal(_PUBKEY),
    "stats/filters": Refusal("the metrics page counts by link and by storage, not by key: leave it out", ([],)),
}
"""Entries that ask for what is not built, with what to do instead."""

_QUEUES: Final = "1 MiB of each priority may wait"
_BATCHES: Final = "messages wait for each other only while the link is busy"
_LOADED: Final = "no plugin is loaded; the storage manager is built in"

IDLE: Final[dict[str, str]] = {
    **{
        f"transport/link/tx/queue/size/{name}": _QUEUES
        for name in (
            "control",
            "real_time",
            "interactive_high",
            "interactive_low",
            "data_high",
            "data",
            "data_low",
            "background",
        )
    },
    "transport/link/tx/queue/batching/enabled": _BATCHES,
    "transport/link/tx/queue/batching/time_limit": _BATCHES,
    "transport/link/tx/queue/allocation/mode": "no queue is allocated before it is used",
    "transport/link/tx/threads": "one loop serves all links",
    "transport/link/rx/buffer_size": "one buffer serves all links",
    "transport/shared_memory/mode": "shared memory is opened when it is first used",
    "plugins_loading/enabled": _LOADED,
    "plugins_loading/search_dirs": _LOADED,
    "routing/router/peers_failover_brokering": "it has no effect in eclipse-zenoh 1.10 either",
}
"""Entries that tune what does not exist here, with why nothing is lost: taken, and told when a node starts."""

_PLUGINS: Final = {
    "rest": "run eclipse-zenoh's zenohd with its rest plugin as a client of this broker",
    "ros2dds": "run zenoh-bridge-ros2dds as a client of this broker",
    "dds": "run zenoh-bridge-dds as a client of this broker",
    "mqtt": "run zenoh-bridge-mqtt as a client of this broker",
    "webserver": "run eclipse-zenoh's zenohd with its webserver plugin as a client of this broker",
    "remote_api": "run zenoh-bridge-remote-api as a client of this broker",
}


def leaves(section: Section = SCHEMA, path: str = "") -> Iterator[tuple[str, Field]]:
    """Every entry of the schema with its path."""
    for name, entry in section.entries.items():
        at = f"{path}/{name}" if path else name
        if isinstance(entry, Section):
            yield from leaves(entry, at)
        else:
            yield at, entry


def row_of(path: str) -> str | None:
    """The path in the table that an entry belongs to: its own, or that of a section around it."""
    while path:
        if path in ACTED or path in REFUSED or path in IDLE:
            return path
        path = path.rpartition("/")[0]
    return None


def check_support(at: At) -> None:
    """Refuse the first entry that asks for what is not built.

    Raises:
        ConfigError: which one, and what to do instead.
    """
    for path, refusal in REFUSED.items():
        if refusal.applies(at(path), _default(path)):
            raise ConfigError(path, "this is not built: a node would not do it", refusal.hint)
    plugins = at("plugins")
    for name, value in plugins.items() if isinstance(plugins, dict) else ():
        if name != MANAGER and value is not None:
            hint = _PLUGINS.get(name) or f"{nearest(name, [MANAGER, *_PLUGINS])}; {MANAGER} is the one there is"
            raise ConfigError(f"plugins/{name}", "there is no such plugin here, and none is loaded", hint)


def without_effect(at: At) -> dict[str, str]:
    """The entries that were set and tune what does not exist here, with why that loses nothing."""
    return {path: reason for path, reason in IDLE.items() if at(path) not in (None, _default(path))}


def _default(path: str) -> Json:
    entry: Section | Field = SCHEMA
    for name in path.split("/"):
        assert isinstance(entry, Section)
        entry = entry.entries[name]
    return cast(Json, entry.default()) if isinstance(entry, Section) else entry.default
