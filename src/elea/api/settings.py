"""`Settings`: a configuration as a node reads it: typed, with the values of its role, times in seconds.

Here are also the defaults that a configuration leaves to the role. Spec: zenoh-1.md section 22.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, TypeVar, cast

from elea.api.config import Config
from elea.api.json5 import Json
from elea.api.storages import store_settings
from elea.api.support import check_support, without_effect
from elea.model.errors import ConfigError
from elea.model.keyexpr import KeyExpr
from elea.model.node_id import NodeId
from elea.model.qos import Role
from elea.model.values import value_class

if TYPE_CHECKING:
    from pathlib import Path

    from elea.node.storage.settings import StoreSettings
    from elea.space.guard import GuardRules

__all__ = [
    "AdminSettings",
    "AuthSettings",
    "ConnectionSettings",
    "GossipSettings",
    "LinkSettings",
    "MulticastSettings",
    "QueueSettings",
    "RetrySettings",
    "ScoutingSettings",
    "Settings",
    "TlsSettings",
    "TransportSettings",
]

T = TypeVar("T")

_ALL: Final = ("router", "peer", "client")
_NONE: Final[tuple[str, ...]] = ()


@value_class
class RetrySettings:
    """How to try again: the first pause, its growth, the longest pause; seconds."""

    first: float
    factor: float
    longest: float


@value_class
class ConnectionSettings:
    """Where to connect or listen. A `timeout` of None never ends, 0 means one attempt."""

    locators: tuple[str, ...]
    timeout: float | None
    exit_on_failure: bool
    retry: RetrySettings


@value_class
class MulticastSettings:
    """Scouting by multicast: whom to connect to, and of those, whom only if one's own id is the greater."""

    enabled: bool
    address: str
    interface: str
    ttl: int
    autoconnect: frozenset[Role]
    greater_zid: frozenset[Role]
    listen: bool


@value_class
class GossipSettings:
    """Scouting by gossip: to whom it is sent, and whom of it to connect to."""

    enabled: bool
    multihop: bool
    target: frozenset[Role]
    autoconnect: frozenset[Role]
    greater_zid: frozenset[Role]


@value_class
class ScoutingSettings:
    """How other nodes are found; seconds."""

    timeout: float
    delay: float
    multicast: MulticastSettings
    gossip: GossipSettings


@value_class
class QueueSettings:
    """How long to wait for room in the queue of a link; seconds, None for ever."""

    wait_before_drop: float
    max_wait_before_drop_fragments: float
    wait_before_close: float | None


@value_class
class TlsSettings:
    """Certificates and keys, as paths or as base64 text, and what is asked of the other side."""

    root_ca_certificate: str | None
    listen_private_key: str | None
    listen_certificate: str | None
    connect_private_key: str | None
    connect_certificate: str | None
    enable_mtls: bool
    verify_name_on_connect: bool


@value_class
class LinkSettings:
    """What holds for every link."""

    protocols: frozenset[str] | None
    resolution_bits: int
    lease: float
    keep_alive: int
    batch_size: int
    queue: QueueSettings
    max_message_size: int
    spin: float
    memory: int | None
    shared_memory: int
    shared_from: int
    tls: TlsSettings


@value_class
class TransportSettings:
    """Sessions with other nodes; seconds."""

    open_timeout: float
    accept_timeout: float
    accept_pending: int
    max_sessions: int
    lowlatency: bool
    qos: bool
    compression: bool
    link: LinkSettings


@value_class
class AuthSettings:
    """User and password to show, and the file with those to accept."""

    user: str | None
    password: str | None
    dictionary_file: Path | None

    def __repr__(self) -> str:
        # Settings are logged; passwords are not.
        return f"AuthSettings(user={self.user!r}, password={'***' if self.password else None})"


@value_class
class AdminSettings:
    """The admin space."""

    enabled: bool
    read: bool
    write: bool


@value_class
class Settings:
    """Everything a node needs to know of its configuration.

    >>> settings = Settings.of(Config.from_json5("{mode: 'client'}"))
    >>> settings.role, settings.connect.timeout, settings.transport.link.lease
    (Role.CLIENT, 0.0, 10.0)
    """

    role: Role
    id: NodeId | None
    metadata: Json
    region_name: str | None
    connect: ConnectionSettings
    listen: ConnectionSettings
    wait_connected: bool
    wait_declared: bool
    scouting: ScoutingSettings
    timestamping: bool
    drop_future_timestamp: bool
    publication: tuple[Mapping[str, Json], ...]
    """Quality of service by key (`elea.api.publicationqos`)."""
    queries_default_timeout: float
    interests_timeout: float
    aggregated_subscribers: tuple[KeyExpr, ...]
    aggregated_publishers: tuple[KeyExpr, ...]
    namespace: str | None
    transport: TransportSettings
    auth: AuthSettings
    admin: AdminSettings
    storages: StoreSettings | None
    without_effect: Mapping[str, str]
    """Entries that were set and tune what does not exist here, with why that loses nothing."""
    guard: GuardRules | None

    @classmethod
    def of(cls, config: Config, role: Role | None = None) -> Settings:
        """What a configuration says to a node of a role; of the role it says itself (peer if none) unless given.

        Raises:
            ConfigError: an entry asks for what is not built (`elea.api.support`), or two do not go together.
        """
        return _Reader(config, role).settings()


class _Reader:
    """Reads values that the schema has checked, so that only their types are left to say."""

    def __init__(self, config: Config, role: Role | None) -> None:
        self.config = config
        self.role = role or Role[(cast("str | None", config._at("mode")) or "peer").upper()]

    def get(self, path: str, default: T) -> T:
        """The value at a path, or the default where it is null; of the same type, by the schema."""
        value = self.config._at(path)
        return default if value is None else cast(T, value)

    def optional(self, path: str, kind: type[T]) -> T | None:
        value = self.config._at(path)
        return None if value is None else cast(T, value)

    def by_role(self, value: Json, default: T) -> T:
        """The value for the role where it depends on it."""
        if isinstance(value, dict) and (not value or any(mode in value for mode in _ALL)):
            value = value.get(str(self.role))
        return default if value is None else cast(T, value)

    def roles(self, path: str, default: tuple[str, ...]) -> frozenset[Role]:
        names = self.by_role(self.config._at(path), list(default))
        return frozenset(Role[name.upper()] for name in names)

    def greater(self, path: str) -> frozenset[Role]:
        """The roles for which only the node with the greater id connects."""
        strategy: Json = self.by_role(self.config._at(path), cast(Json, "always"))
        if isinstance(strategy, dict):
            return frozenset(Role[mode.upper()] for mode in _ALL if strategy.get(f"to_{mode}") == "greater-zid")
        return frozenset(Role if strategy == "greater-zid" else ())

    def per_role(self, router: T, peer: T, client: T) -> T:
        return {Role.ROUTER: router, Role.PEER: peer, Role.CLIENT: client}[self.role]

    def settings(self) -> Settings:
        check_support(self.config._at)
        id = self.optional("id", str)
        return Settings(
            role=self.role,
            id=None if id is None else NodeId.parse(id),
            metadata=self.config._at("metadata"),
            region_name=self.optional("region_name", str),
            connect=self.connection("connect", self.per_role(-1, -1, 0), self.role is Role.CLIENT),
            listen=self.connection("listen", 0, True),
            wait_connected=self.get("open/return_conditions/connect_scouted", True),
            wait_declared=self.get("open/return_conditions/declares", True),
            scouting=self.scouting(),
            timestamping=self.by_role(self.config._at("timestamping/enabled"), self.role is Role.ROUTER),
            drop_future_timestamp=self.get("timestamping/drop_future_timestamp", False),
            publication=tuple(cast("list[Mapping[str, Json]]", self.config._at("qos/publication") or [])),
            queries_default_timeout=self.get("queries_default_timeout", 10_000) / 1000,
            interests_timeout=self.get("routing/interests/timeout", 10_000) / 1000,
            aggregated_subscribers=self.keys("aggregation/subscribers"),
            aggregated_publishers=self.keys("aggregation/publishers"),
            namespace=self.optional("namespace", str),
            transport=self.transport(),
            auth=self.auth(),
            admin=AdminSettings(
                self.get("adminspace/enabled", False),
                self.get("adminspace/permissions/read", True),
                self.get("adminspace/permissions/write", False),
            ),
            storages=self.storages(),
            without_effect=without_effect(self.config._at),
            guard=self.guard(),
        )

    def storages(self) -> StoreSettings | None:
        plugins = self.config._at("plugins")
        return store_settings(plugins) if plugins else None

    def guard(self) -> GuardRules | None:
        config = self.config
        if (
            not config._at("access_control/enabled")
            and not config._at("downsampling")
            and not config._at("low_pass_filter")
        ):
            return None
        from elea.api.accesssettings import guard_rules  # not with the module: few nodes have rules

        return guard_rules(config)

    def keys(self, path: str) -> tuple[KeyExpr, ...]:
        return tuple(KeyExpr(text) for text in cast("list[str]", self.config._at(path)))

    def connection(self, path: str, timeout: int, fails: bool) -> ConnectionSettings:
        groups: list[Json] = self.by_role(self.config._at(f"{path}/endpoints"), [])
        limit = self.by_role(self.config._at(f"{path}/timeout_ms"), timeout)
        return ConnectionSettings(
            locators=self.locators(f"{path}/endpoints", groups),
            timeout=None if limit < 0 else limit / 1000,
            exit_on_failure=self.by_role(self.config._at(f"{path}/exit_on_failure"), fails),
            retry=self.retry(cast("dict[str, Json] | None", self.config._at(f"{path}/retry")) or {}),
        )

    def locators(self, path: str, groups: list[Json]) -> tuple[str, ...]:
        """All locators, in order. A client opens one session anyway; others have no rule for taking one of several."""
        found: list[str] = []
        for index, group in enumerate(groups):
            if isinstance(group, dict):
                if group["strategy"] == "oneOf" and self.role is not Role.CLIENT:
                    problem = f"a {self.role} opens a session to each of its locators"
                    raise ConfigError(f"{path}[{index}]/strategy", problem, 'write "allOf", or name one locator')
                found += cast("list[str]", group["locators"])
            else:
                found.append(cast(str, group))
        for index, text in enumerate(found):
            if "prio=" in text.partition("?")[2].partition("#")[0]:
                hint = "leave prio out: one link carries all priorities"
                raise ConfigError(f"{path}[{index}]", f"{text!r}: links for some priorities only are not built", hint)
        return tuple(found)

    def retry(self, given: Mapping[str, Json]) -> RetrySettings:
        return RetrySettings(
            self.by_role(given.get("period_init_ms"), 1000) / 1000,
            self.by_role(given.get("period_increase_factor"), 2.0),
            self.by_role(given.get("period_max_ms"), 4000) / 1000,
        )

    def scouting(self) -> ScoutingSettings:
        multicast, gossip = "scouting/multicast", "scouting/gossip"
        found = self.per_role(_NONE, _ALL, _ALL)
        return ScoutingSettings(
            timeout=self.get("scouting/timeout", 3000) / 1000,
            delay=self.get("scouting/delay", 500) / 1000,
            multicast=MulticastSettings(
                enabled=self.get(f"{multicast}/enabled", True),
                address=self.get(f"{multicast}/address", "224.0.0.224:7446"),
                interface=self.get(f"{multicast}/interface", "auto"),
                ttl=self.get(f"{multicast}/ttl", 1),
                autoconnect=self.roles(f"{multicast}/autoconnect", found),
                greater_zid=self.greater(f"{multicast}/autoconnect_strategy"),
                listen=self.by_role(self.config._at(f"{multicast}/listen"), True),
            ),
            gossip=GossipSettings(
                enabled=self.get(f"{gossip}/enabled", True),
                multihop=self.get(f"{gossip}/multihop", False),
                target=self.roles(f"{gossip}/target", self.per_role(_ALL[:2], _ALL[:2], _NONE)),
                autoconnect=self.roles(f"{gossip}/autoconnect", found),
                greater_zid=self.greater(f"{gossip}/autoconnect_strategy"),
            ),
        )

    def transport(self) -> TransportSettings:
        unicast = "transport/unicast"
        return TransportSettings(
            open_timeout=self.get(f"{unicast}/open_timeout", 0) / 1000,
            accept_timeout=self.get(f"{unicast}/accept_timeout", 0) / 1000,
            accept_pending=self.get(f"{unicast}/accept_pending", 0),
            max_sessions=self.get(f"{unicast}/max_sessions", 0),
            lowlatency=self.get(f"{unicast}/lowlatency", False),
            qos=self.get(f"{unicast}/qos/enabled", True),
            compression=self.get(f"{unicast}/compression/enabled", False),
            link=self.link(),
        )

    def link(self) -> LinkSettings:
        path, memory = "transport/link", "transport/shared_memory"
        optimization = f"{memory}/transport_optimization"
        is_shared = self.get(f"{memory}/enabled", True) and self.get(f"{optimization}/enabled", True)
        protocols: list[str] | None = self.optional(f"{path}/protocols", list)
        return LinkSettings(
            protocols=None if protocols is None else frozenset(protocols),
            resolution_bits=int(self.get(f"{path}/tx/sequence_number_resolution", "").removesuffix("bit")),
            lease=self.get(f"{path}/tx/lease", 0) / 1000,
            keep_alive=self.get(f"{path}/tx/keep_alive", 0),
            batch_size=self.get(f"{path}/tx/batch_size", 0),
            queue=self.queue(f"{path}/tx/queue"),
            max_message_size=self.get(f"{path}/rx/max_message_size", 0),
            spin=self.get(f"{path}/rx/spin", 250) / 1e6,
            memory=self.optional(f"{path}/rx/memory", int),
            shared_memory=self.get(f"{optimization}/pool_size", 0) if is_shared else 0,
            shared_from=self.get(f"{optimization}/message_size_threshold", 0),
            tls=self.tls(f"{path}/tls"),
        )

    def queue(self, path: str) -> QueueSettings:
        waits = f"{path}/congestion_control"
        close = self.get(f"{waits}/block/wait_before_close", 0)
        return QueueSettings(
            wait_before_drop=_micro(self.get(f"{waits}/drop/wait_before_drop", 0)),
            max_wait_before_drop_fragments=_micro(self.get(f"{waits}/drop/max_wait_before_drop_fragments", 0)),
            wait_before_close=None if close < 0 else _micro(close),
        )

    def tls(self, path: str) -> TlsSettings:
        def text(name: str) -> str | None:
            return self.optional(f"{path}/{name}", str)

        return TlsSettings(
            root_ca_certificate=text("root_ca_certificate"),
            listen_private_key=text("listen_private_key"),
            listen_certificate=text("listen_certificate"),
            connect_private_key=text("connect_private_key"),
            connect_certificate=text("connect_certificate"),
            enable_mtls=self.get(f"{path}/enable_mtls", False),
            verify_name_on_connect=self.get(f"{path}/verify_name_on_connect", True),
        )

    def auth(self) -> AuthSettings:
        path = "transport/auth/usrpwd"
        user, password = self.optional(f"{path}/user", str), self.optional(f"{path}/password", str)
        if (user is None) is not (password is None):
            # Set one by one, they could not be compared earlier.
            raise ConfigError(path, "user and password go together", "give both or none")
        file = self.optional(f"{path}/dictionary_file", str)
        if file is None:
            return AuthSettings(user, password, None)
        from pathlib import Path  # not with the module: it costs 5 ms

        return AuthSettings(user, password, Path(file))


def _micro(microseconds: int) -> float:
    return max(0, microseconds) / 1_000_000
