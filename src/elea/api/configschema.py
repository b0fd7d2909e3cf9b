"""Every entry of a configuration, with its kind and default: the tree of eclipse-zenoh 1.10.2.

Entries whose default is null have one all the same, which depends on the mode or on the machine; those are in
`elea.api.settings`, where they are needed. Spec: zenoh-1.md section 22.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from elea.api.json5 import Json
from elea.api.kinds import (
    Anything,
    ByMode,
    ByTarget,
    Choice,
    Either,
    Field,
    Flag,
    Key,
    Kind,
    Listed,
    Locator,
    Matcher,
    Node,
    Nullable,
    Real,
    Record,
    Section,
    SizeRange,
    SocketAddress,
    Text,
    Whole,
    refuse,
)
from elea.api.storages import Plugins
from elea.model.errors import ConfigError

__all__ = ["SCHEMA"]

_U16: Final = Whole(0, (1 << 16) - 1)
_U32: Final = Whole(0, (1 << 32) - 1)
_U64: Final = Whole(0, (1 << 64) - 1)
_I64: Final = Whole(-(1 << 63), (1 << 63) - 1, (1 << 63) - 1)
_POSITIVE: Final = Whole(1, (1 << 64) - 1)
_QUEUE: Final = Whole(1, 16, 16)

_STRATEGY: Final = ByMode(ByTarget(Choice(("always", "greater-zid"))))
_TARGETS: Final = ByMode(Matcher())
_DATA: Final = Choice(("put", "delete", "query", "reply"))
_FLOWS: Final = Listed(Choice(("egress", "ingress")), filled=True)
_PROTOCOLS: Final = Listed(
    Choice(("tcp", "udp", "tls", "quic", "serial", "unixpipe", "unixsock-stream", "vsock", "ws")), filled=True
)
_TEXTS: Final = Listed(Text(), filled=True)
_KEYS: Final = Listed(Key(), filled=True)
_NODES: Final = Listed(Node(), filled=True)
_PERMISSION: Final = Choice(("allow", "deny"))
_CONGESTION: Final = Choice(("drop", "block", "block_first"))
_RELIABILITY: Final = Choice(("best_effort", "reliable"))
_PRIORITY: Final = Choice(
    ("real_time", "interactive_high", "interactive_low", "data_high", "data", "data_low", "background")
)

_RETRY: Final = Record(
    {},
    {"period_init_ms": ByMode(_I64), "period_max_ms": ByMode(_I64), "period_increase_factor": ByMode(Real())},
)


class _Increment:
    """A priority by name, or how many levels to move it."""

    expects: Final = "the name of a priority, or a number from -7 to 7"

    def read(self, value: Json, path: str) -> Json:
        return (_PRIORITY if isinstance(value, str) else Whole(-7, 7, 7)).read(value, path)


class _South:
    """The southern side of a gateway: the preset, or a list of filters."""

    expects: Final = '"auto", or a list of objects with filters'

    def read(self, value: Json, path: str) -> Json:
        if value == "auto":
            return value
        return _SOUTH.read(value, path) if isinstance(value, list) else refuse(path, value, self.expects)


_SOUTH: Final = Listed(
    Record(
        {},
        {
            "filters": Listed(
                Record(
                    {},
                    {
                        "modes": Matcher(),
                        "interfaces": _TEXTS,
                        "zids": _NODES,
                        "region_names": Listed(Text(filled=True, longest=32), filled=True),
                        "negated": Flag(),
                    },
                    {"negated": False},
                )
            )
        },
    )
)


def _same_login(value: Mapping[str, Json], path: str) -> None:
    if (value["user"] is None) is not (value["password"] is None):
        missing = "user" if value["user"] is None else "password"
        raise ConfigError(f"{path}/{missing}", "user and password go together", "give both or none")


def _unset(**kinds: Kind) -> dict[str, Field | Section]:
    """Entries that are null until they are set."""
    return {name: Field(Nullable(kind)) for name, kind in kinds.items()}


def _flags(**defaults: bool) -> Section:
    return Section({name: Field(Flag(), default) for name, default in defaults.items()})


def _numbers(**defaults: int) -> dict[str, Field | Section]:
    return {name: Field(_U64, default) for name, default in defaults.items()}


_CONNECTION_END: Final = {
    "exit_on_failure": Field(Nullable(ByMode(Flag()))),
    "retry": Field(Nullable(_RETRY)),
}

_LOCATORS: Final = Record(
    {"strategy": Choice(("allOf", "oneOf")), "locators": Listed(Locator())},
    {},
)

_TX: Final = Section(
    {
        "sequence_number_resolution": Field(Choice(("8bit", "16bit", "32bit")), "32bit"),
        **_numbers(lease=10_000, keep_alive=4),
        "batch_size": Field(_U16, 65_535),
        "queue": Section(
            {
                "size": Section(
                    {
                        name: Field(_QUEUE, 2)
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
                    }
                ),
                "congestion_control": Section(
                    {
                        "drop": Section(
                            {
                                "wait_before_drop": Field(_I64, 1_000),
                                "max_wait_before_drop_fragments": Field(_I64, 50_000),
                            }
                        ),
                        "block": Section({"wait_before_close": Field(_I64, 5_000_000)}),
                    }
                ),
                "batching": Section({"enabled": Field(Flag(), True), "time_limit": Field(_U64, 1)}),
                "allocation": Section({"mode": Field(Choice(("init", "lazy")), "lazy")}),
            }
        ),
        # eclipse-zenoh has one thread for every four processors; nothing here depends on the number.
        "threads": Field(_U64, 1),
    }
)

_TLS: Final = Section(
    {
        **_unset(
            root_ca_certificate=Text(),
            listen_private_key=Text(),
            listen_certificate=Text(),
            enable_mtls=Flag(),
            connect_private_key=Text(),
            connect_certificate=Text(),
            verify_name_on_connect=Flag(),
            close_link_on_expiration=Flag(),
            so_sndbuf=_U32,
            so_rcvbuf=_U32,
        ),
        **{
            f"{name}_base64": Field(Nullable(Text()), hidden=True)
            for name in (
                "root_ca_certificate",
                "listen_private_key",
                "listen_certificate",
                "connect_private_key",
                "connect_certificate",
            )
        },
    }
)

_TRANSPORT: Final = Section(
    {
        "unicast": Section(
            {
                **_numbers(
                    open_timeout=10_000, accept_timeout=10_000, accept_pending=100, max_sessions=1_000, max_links=1
                ),
                "lowlatency": Field(Flag(), False),
                "qos": _flags(enabled=True),
                "compression": _flags(enabled=False),
            }
        ),
        "multicast": Section(
            {
                "join_interval": Field(Nullable(_U64), 2_500),
                "max_sessions": Field(Nullable(_U64), 1_000),
                "qos": _flags(enabled=False),
                "compression": _flags(enabled=False),
            }
        ),
        "link": Section(
            {
                "protocols": Field(Nullable(Listed(Text()))),
                "tx": _TX,
                "rx": Section(
                    {
                        **_numbers(buffer_size=65_535, max_message_size=1 << 30),
                        # Ours alone, and so not shown: what is shown is read by others too.
                        "spin": Field(_U64, 250, hidden=True),
                        "memory": Field(Nullable(_POSITIVE), hidden=True),
                    }
                ),
                "tls": _TLS,
                "tcp": Section(_unset(so_sndbuf=_U32, so_rcvbuf=_U32)),
                "unixpipe": Section(_unset(file_access_mask=_U32)),
            }
        ),
        "shared_memory": Section(
            {
                "enabled": Field(Flag(), True),
                "mode": Field(Choice(("init", "lazy")), "lazy"),
                "transport_optimization": Section(
                    {
                        "enabled": Field(Flag(), True),
                        "pool_size": Field(_POSITIVE, 16 << 20),
                        "message_size_threshold": Field(_U64, 3_072),
                        "messages": Field(Listed(_DATA), ["put", "query", "reply"]),
                    }
                ),
            }
        ),
        "auth": Section(
            {
                "usrpwd": Section(_unset(user=Text(), password=Text(), dictionary_file=Text()), _same_login),
                "pubkey": Section(
                    _unset(
                        public_key_pem=Text(),
                        private_key_pem=Text(),
                        public_key_file=Text(),
                        private_key_file=Text(),
                        key_size=_U64,
                        known_keys_file=Text(),
                    )
                ),
            }
        ),
    }
)

_FILTERED: Final[dict[str, Kind]] = {"id": Text(), "interfaces": _TEXTS, "link_protocols": _PROTOCOLS}

_RATE: Final = Record({"key_expr": Key(), "freq": Real()}, {})

_DOWNSAMPLING: Final = Listed(
    Record(
        {
            "messages": Listed(_DATA, filled=True),
            "rules": Listed(Record({"key_expr": Key(), "freq": Real()}, {}), True),
        },
        {**_FILTERED, "flows": _FLOWS},
        order=("id", "interfaces", "link_protocols", "messages", "rules", "flows"),
    )
)

_LOW_PASS: Final = Listed(
    Record(
        {"messages": Listed(_DATA, filled=True), "key_exprs": _KEYS, "size_limit": _U64},
        {**_FILTERED, "flows": _FLOWS},
        order=("id", "interfaces", "link_protocols", "flows", "messages", "key_exprs", "size_limit"),
    )
)

_ACL: Final = Section(
    {
        "enabled": Field(Flag(), False),
        "default_permission": Field(_PERMISSION, "deny"),
        **_unset(
            rules=Listed(
                Record(
                    {
                        "id": Text(),
                        "key_exprs": _KEYS,
                        "messages": Listed(
                            Choice(
                                (
                                    "put",
                                    "delete",
                                    "declare_subscriber",
                                    "query",
                                    "declare_queryable",
                                    "reply",
                                    "liveliness_token",
                                    "declare_liveliness_subscriber",
                                    "liveliness_query",
                                    # Ours alone: requests to stores.
                                    "store_read",
                                    "store_cursor",
                                    "store_stage",
                                    "store_admin",
                                )
                            ),
                            filled=True,
                        ),
                        "permission": _PERMISSION,
                    },
                    {"flows": _FLOWS},
                    order=("id", "key_exprs", "messages", "flows", "permission"),
                )
            ),
            subjects=Listed(
                Record(
                    {"id": Text()},
                    {
                        "interfaces": _TEXTS,
                        "cert_common_names": _TEXTS,
                        "usernames": _TEXTS,
                        "link_protocols": _PROTOCOLS,
                        "zids": _NODES,
                    },
                )
            ),
            policies=Listed(
                Record(
                    {"rules": Listed(Text()), "subjects": Listed(Text())},
                    {"id": Text()},
                    order=("id", "rules", "subjects"),
                )
            ),
        ),
    }
)

_PUBLICATION: Final = Listed(
    Record(
        {
            "key_exprs": Listed(Key()),
            "config": Record(
                {},
                {
                    "congestion_control": _CONGESTION,
                    "priority": _PRIORITY,
                    "express": Flag(),
                    "reliability": _RELIABILITY,
                    "allowed_destination": Choice(("session_local", "remote", "any")),
                },
            ),
        },
        {},
    )
)

_OVERWRITE: Final = Listed(
    Record(
        {
            "messages": Listed(Choice(("put", "delete", "query")), filled=True),
            "overwrite": Record({}, {"congestion_control": _CONGESTION, "priority": _Increment(), "express": Flag()}),
        },
        {
            **_FILTERED,
            "zids": _NODES,
            "key_exprs": _KEYS,
            "flows": _FLOWS,
            "qos": Record(
                {},
                {
                    "congestion_control": _CONGESTION,
                    "priority": _PRIORITY,
                    "express": Flag(),
                    "reliability": _RELIABILITY,
                },
            ),
            "payload_size": SizeRange(),
        },
        order=(
            "id",
            "zids",
            "interfaces",
            "link_protocols",
            "messages",
            "key_exprs",
            "overwrite",
            "flows",
            "qos",
            "payload_size",
        ),
    )
)

_SEARCH_DIRS: Final = Listed(
    Either(Record({"kind": Choice(("path", "current_exe_parent"))}, {"value": Text()}), Text())
)

SCHEMA: Final = Section(
    {
        "id": Field(Nullable(Node())),
        "metadata": Field(Anything()),
        "mode": Field(Nullable(Choice(("router", "peer", "client")))),
        "region_name": Field(Nullable(Text(filled=True, longest=32))),
        "gateway": Field(Record({}, {"south": _South()}), {"south": None}),
        "connect": Section(
            {
                "timeout_ms": Field(Nullable(ByMode(_I64))),
                "endpoints": Field(ByMode(Listed(Either(_LOCATORS, Locator()))), []),
                **_CONNECTION_END,
            }
        ),
        "listen": Section(
            {
                "timeout_ms": Field(Nullable(ByMode(_I64))),
                "endpoints": Field(ByMode(Listed(Locator())), {"router": ["tcp/[::]:7447"], "peer": ["tcp/[::]:0"]}),
                **_CONNECTION_END,
            }
        ),
        "open": Section({"return_conditions": Section(_unset(connect_scouted=Flag(), declares=Flag()))}),
        "scouting": Section(
            {
                **_unset(timeout=_U64, delay=_U64),
                "multicast": Section(
                    _unset(
                        enabled=Flag(),
                        address=SocketAddress(),
                        interface=Text(),
                        ttl=_U32,
                        autoconnect=_TARGETS,
                        autoconnect_strategy=_STRATEGY,
                        listen=ByMode(Flag()),
                    )
                ),
                "gossip": Section(
                    _unset(
                        enabled=Flag(),
                        multihop=Flag(),
                        target=_TARGETS,
                        autoconnect=_TARGETS,
                        autoconnect_strategy=_STRATEGY,
                    )
                ),
            }
        ),
        "timestamping": Section(_unset(enabled=ByMode(Flag()), drop_future_timestamp=Flag())),
        "queries_default_timeout": Field(Nullable(_U64)),
        "routing": Section(
            {
                "router": Section(
                    {
                        # Without effect since 1.10, and still found in configuration files.
                        "peers_failover_brokering": Field(Nullable(Flag()), hidden=True),
                        "linkstate": Section(
                            {
                                "transport_weights": Field(
                                    Listed(Record({"dst_zid": Node(), "weight": Whole(1, (1 << 16) - 1)}, {})), []
                                )
                            }
                        ),
                    }
                ),
                "peer": Field(Anything(), hidden=True),
                "interests": Section(_unset(timeout=_U64)),
            }
        ),
        "aggregation": Section({"subscribers": Field(Listed(Key()), []), "publishers": Field(Listed(Key()), [])}),
        "qos": Section({"publication": Field(_PUBLICATION, []), "network": Field(_OVERWRITE, [])}),
        "transport": _TRANSPORT,
        "adminspace": Section({"enabled": Field(Flag(), False), "permissions": _flags(read=True, write=False)}),
        "namespace": Field(Nullable(Key(wild=False))),
        "downsampling": Field(_DOWNSAMPLING, []),
        "access_control": _ACL,
        "low_pass_filter": Field(_LOW_PASS, []),
        "stats": Section({"filters": Field(Listed(Record({"key": Key()}, {})), [])}),
        "plugins_loading": Section(
            {
                "enabled": Field(Flag(), False),
                "search_dirs": Field(
                    _SEARCH_DIRS,
                    [
                        {"kind": "current_exe_parent", "value": None},
                        ".",
                        "~/.zenoh/lib",
                        "/opt/homebrew/lib",
                        "/usr/local/lib",
                        "/usr/lib",
                    ],
                ),
            }
        ),
        "plugins": Field(Plugins(), {}),
    }
)
"""The whole tree, in the order in which it is shown."""
