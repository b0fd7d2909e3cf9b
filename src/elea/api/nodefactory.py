"""From a configuration to a running node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from elea.api.settings import Settings
from elea.io.sharedmemory import WORTH
from elea.io.systemrandom import SystemRandom
from elea.io.tls_settings import TlsSettings
from elea.model.errors import ConfigError
from elea.model.logger import logger
from elea.model.node_id import NodeId
from elea.model.qos import Role
from elea.node.admin import Admin
from elea.node.links import LinkSettings
from elea.node.runtime import Runtime
from elea.protocol.backoff import Backoff

if TYPE_CHECKING:
    from pathlib import Path

    from elea.node.discovery import Discovery
    from elea.node.node import Node
    from elea.node.storage.service import Storages

__all__ = ["link_settings", "settle_node", "start"]

_log = logger("elea.api")


def start(settings: Settings) -> Runtime:
    """A node as `settings` describe it, listening and connected."""
    node_id = settings.id or NodeId.random(SystemRandom())
    runtime = Runtime(node_id.data, settings.role, link_settings(settings), timestamping=settings.timestamping)
    settle_node(runtime.node, settings)
    runtime.node.space.set_interest_timeout(settings.interests_timeout)
    if settings.without_effect:
        told = ", ".join(f"{path} ({reason})" for path, reason in settings.without_effect.items())
        _log.warning("entries of the configuration without effect here: %s", told)
    admin = settings.admin
    Admin(runtime.node, runtime.links, enabled=admin.enabled, read=admin.read, metadata=settings.metadata)
    if admin.enabled and admin.write:
        _listen_for_changes(runtime.node, settings)
    try:
        if settings.storages is not None:
            runtime.storages = _storages(runtime, settings)
        runtime.listen(settings.listen.locators if settings.role is not Role.CLIENT else ())
        if settings.role is Role.ROUTER:
            _warn_if_exposed(runtime, settings)
        if runtime.storages is not None:
            runtime.storages.align(runtime.links.settings)
        connect = settings.connect
        # Clients take no part in gossip, and one that is told where to connect and does not scout finds nobody.
        if settings.role is not Role.CLIENT or settings.scouting.multicast.enabled or not connect.locators:
            runtime.discovery = _discovery(runtime, settings)
        if runtime.discovery is not None:
            runtime.discovery.start()
        runtime.connect(connect.locators, timeout=connect.timeout, must=connect.exit_on_failure)
        if runtime.discovery is not None and settings.role is not Role.CLIENT:
            runtime.discovery.wait(expected=bool(connect.locators))
        elif runtime.discovery is not None and not connect.locators:
            runtime.discovery.find_one()
    except BaseException:
        runtime.close()
        raise
    return runtime


def _listen_for_changes(node: Node, settings: Settings) -> None:
    from elea.api.accesssettings import changed
    from elea.node.adminconfig import listen_for_changes
    from elea.space.guard import GuardRules

    rules = settings.guard or GuardRules()

    def change(entry: str, text: bytes | None) -> None:
        nonlocal rules
        rules = changed(rules, entry, text)
        node.watch(rules)

    listen_for_changes(node, change)


def settle_node(node: Node, settings: Settings) -> None:
    """Tell a node what it declares in place of what it includes, as others see it, what it drops, and its rules."""
    before = "" if settings.namespace is None else f"{settings.namespace}/"
    node.local.aggregated_subscribers = tuple(f"{before}{one}" for one in settings.aggregated_subscribers)
    node.local.aggregated_publishers = tuple(f"{before}{one}" for one in settings.aggregated_publishers)
    if settings.drop_future_timestamp and settings.timestamping:
        from elea.node.futurestamps import FutureStamps  # few nodes do

        node.future = FutureStamps(node)
    if settings.guard is not None:
        node.watch(settings.guard)


def _warn_if_exposed(runtime: Runtime, settings: Settings) -> None:
    from elea.node.exposure import warn_if_exposed  # not with the module: clients do not

    warn_if_exposed(settings.listen.locators, runtime.links.settings)


def _storages(runtime: Runtime, settings: Settings) -> Storages | None:
    """What this node keeps; imported only here, since it brings pyarrow."""
    if settings.storages is None:
        return None
    if settings.role is Role.CLIENT:
        hint = "give the storages to a broker: elea broker --store DIR --persist KEYEXPR"
        raise ConfigError("plugins/storage_manager", "a client keeps nothing for others", hint)
    try:
        from elea.node.storage.service import Storages
    except ModuleNotFoundError as error:
        hint = "in a clone of Elea: pip install '.[broker]'"
        raise ConfigError(
            "plugins/storage_manager", f"storages need {error.name}, which is not installed", hint
        ) from error
    admin = settings.admin
    return Storages(runtime.node, settings.storages, is_told=admin.enabled and admin.read)


def _can_compress() -> bool:
    """Whether LZ4 is installed: an agreement on compression could not be kept without."""
    from importlib.util import find_spec

    if find_spec("lz4") is not None:
        return True
    _log.warning(
        "compression not offered: problem=LZ4 is not installed hint=in a clone of Elea: pip install '.[compression]'"
    )
    return False


def _discovery(runtime: Runtime, settings: Settings) -> Discovery | None:
    from elea.node.dialect import DEFAULT
    from elea.node.discovery import DiscoverySettings, GossipRules

    scouting = settings.scouting
    multicast, gossip = scouting.multicast, scouting.gossip
    rules = GossipRules(gossip.target, gossip.autoconnect, gossip.greater_zid, gossip.multihop)
    found = DiscoverySettings(
        timeout=scouting.timeout,
        delay=scouting.delay,
        group=multicast.address if multicast.enabled else None,
        interface=multicast.interface,
        ttl=multicast.ttl,
        answers=multicast.listen,
        autoconnect=multicast.autoconnect,
        greater=multicast.greater_zid,
        gossip=rules if gossip.enabled else None,
        wait_connected=settings.wait_connected,
        wait_declared=settings.wait_declared,
    )
    for name in sorted(runtime.links.heard_dialects - {DEFAULT}):
        other = runtime.links.dialect(name).discovery(found)
        if other is not None:
            other.start()  # its dialect ends it
    return runtime.links.dialect().discovery(found)


def link_settings(settings: Settings) -> LinkSettings:
    """What a configuration says of links."""
    transport, link, auth = settings.transport, settings.transport.link, settings.auth
    credentials = None
    if auth.user is not None and auth.password is not None:
        credentials = (auth.user.encode(), auth.password.encode())
    retry = settings.connect.retry
    wait = link.queue.wait_before_close
    return LinkSettings(
        batch_size=link.batch_size,
        sn_bits=min(link.resolution_bits, 32),
        qos=transport.qos,
        lowlatency=transport.lowlatency,
        compression=transport.compression and _can_compress(),
        lease=link.lease,
        keep_alives=link.keep_alive,
        region_name=None if settings.region_name is None else settings.region_name.encode(),
        credentials=credentials,
        tls=_tls(settings),
        users=None if auth.dictionary_file is None else _users(auth.dictionary_file),
        open_timeout=transport.open_timeout,
        accept_timeout=transport.accept_timeout,
        accept_pending=transport.accept_pending,
        max_message=link.max_message_size,
        memory=link.memory,
        max_sessions=transport.max_sessions,
        wait_before_drop=link.queue.wait_before_drop,
        wait_before_drop_fragments=link.queue.max_wait_before_drop_fragments,
        wait_before_close=3600.0 if wait is None else wait,
        protocols=link.protocols,
        spin=link.spin,
        shared_memory=link.shared_memory,
        shared_from=max(link.shared_from, WORTH),
        backoff=lambda: Backoff(first=retry.first, factor=retry.factor, longest=retry.longest),
    )


def _tls(settings: Settings) -> TlsSettings:
    tls = settings.transport.link.tls
    return TlsSettings(
        root_ca_certificate=tls.root_ca_certificate,
        listen_certificate=tls.listen_certificate,
        listen_private_key=tls.listen_private_key,
        connect_certificate=tls.connect_certificate,
        connect_private_key=tls.connect_private_key,
        enable_mtls=tls.enable_mtls,
        verify_name_on_connect=tls.verify_name_on_connect,
    )


def _users(file: Path) -> dict[bytes, bytes]:
    """User names and passwords, one `user:password` a line (zenoh-1 §5.6)."""
    try:
        lines = file.read_bytes().splitlines()
    except OSError as error:
        raise ConfigError("transport/auth/usrpwd/dictionary_file", f"cannot read {file}: {error}") from error
    users: dict[bytes, bytes] = {}
    for line in filter(None, map(bytes.strip, lines)):
        user, colon, password = line.partition(b":")
        if not colon:
            raise ConfigError("transport/auth/usrpwd/dictionary_file", f"line {line!r} is not user:password")
        users[user.strip()] = password.strip()
    return users
