"""The storages of a configuration: the section of eclipse-zenoh's storage manager, with the volumes a broker has here.

::

    plugins: {
      storage_manager: {
        volumes: {log: {dir: "/var/lib/elea", sync: "durable"}},
        storages: {
          home: {key_expr: "home/**", volume: "log", retain: {age: 86400, bytes: 1000000000}},
          now: {key_expr: "now/**", volume: "memory", replication: {peers: ["tcp/10.0.0.2:7447"], interval: 10}},
        },
      },
    }

Volume `memory` is always there. Volume `log` keeps each storage in a directory of its name below `dir`, and besides
the log `default`, for keys of no storage that were put with a durability. `replication` names the brokers whose storage
of the same key expression it is aligned with; that of a volume is for the log `default`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, cast

from elea.api.json5 import Json
from elea.api.kinds import (
    Anything,
    Choice,
    Either,
    Flag,
    Key,
    Kind,
    Listed,
    Locator,
    Real,
    Record,
    Text,
    Whole,
    nearest,
    refuse,
)
from elea.model.errors import ConfigError
from elea.model.values import replaced, value_class

if TYPE_CHECKING:
    from elea.node.storage.settings import StorageSettings, StoreSettings

__all__ = ["Plugins", "store_settings"]

MANAGER: Final = "storage_manager"
NAME_CHARS: Final = 128
"""Characters of the name of a storage: a file name has 255 bytes."""

VOLUMES: Final = ("memory", "log")

LEAST_INTERVAL: Final = 0.1
"""Seconds between two rounds of alignment, at least."""


@value_class
class _AtLeast:
    """A number that is not below another."""

    least: float

    @property
    def expects(self) -> str:
        return f"a number from {self.least:g} on"

    def read(self, value: Json, path: str) -> Json:
        found = Real().read(value, path)
        return found if isinstance(found, float) and self.least <= found < 1e9 else refuse(path, value, self.expects)


_COUNT: Final = Whole(1, (1 << 63) - 1)
_RETAIN: Final = Record(
    {},
    {"age": Real(), "bytes": _COUNT, "samples": _COUNT, "past_cursors": Flag()},
    {"past_cursors": False},
)
# The names of eclipse-zenoh. Where the others are must be said here; how time is cut is settled (`store.digest`).
_CUTS: Final[dict[str, Kind]] = {"sub_intervals": _COUNT, "hot": _COUNT, "warm": _COUNT}
_REPLICATION: Final = Record(
    {"peers": Listed(Locator(), filled=True)},
    {"interval": _AtLeast(LEAST_INTERVAL), "propagation_delay": _AtLeast(0.0), **_CUTS},
    {"interval": 10.0, "propagation_delay": 250.0},
)
_VOLUME: Final = Either(Record({"id": Choice(VOLUMES)}, {"dir": Text(filled=True)}), Choice(VOLUMES))
_STORAGE: Final = Record(
    {"key_expr": Key(), "volume": _VOLUME},
    {
        "complete": Flag(),
        "retain": _RETAIN,
        "strip_prefix": Text(),
        "garbage_collection": Anything(),
        "replication": _REPLICATION,
    },
    {"complete": False},
)
_LOG: Final = Record(
    {"dir": Text(filled=True)},
    {"sync": Choice(("durable", "relaxed")), "replication": _REPLICATION},
    {"sync": "durable"},
)

NOT_YET: Final = {
    "garbage_collection": "deletions are remembered for a day; use retain for how much is kept",
}


@value_class
class Plugins:
    """What is said to plugins: checked for the storage manager, which is built in, and taken as it is for others."""

    expects: str = "any JSON value, as a rule an object with the configuration of each plugin"

    def read(self, value: Json, path: str) -> Json:
        whole = Anything().read(value, path)
        if not isinstance(whole, dict) or whole.get(MANAGER) is None:
            return whole
        return {**whole, MANAGER: _manager(whole[MANAGER], f"{path}/{MANAGER}")}


def _manager(value: Json, path: str) -> Json:
    known: dict[str, Kind] = {"volumes": Anything(), "storages": Anything()}
    loading: dict[str, Kind] = {
        "__required__": Flag(),
        "__path__": Anything(),
        "__config__": Text(),
        "backend_search_dirs": Listed(Text()),
    }
    found = Record({}, {**known, **loading}, {"volumes": {}, "storages": {}}).read(value, path)
    assert isinstance(found, dict)
    volumes = _volumes(found["volumes"], f"{path}/volumes")
    storages = _named(found["storages"], f"{path}/storages")
    for name in storages:
        _check_name(name, f"{path}/storages/{name}")
    read = {name: _storage(item, f"{path}/storages/{name}", volumes) for name, item in storages.items()}
    said = {name: item for name, item in found.items() if name in loading and item is not None}
    return {**said, "volumes": volumes, "storages": read}


def _named(value: Json, path: str) -> dict[str, Json]:
    return value if isinstance(value, dict) else refuse(path, value, "an object with an entry for each name")


def _volumes(value: Json, path: str) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for name, item in _named(value, path).items():
        if name not in VOLUMES:
            raise ConfigError(f"{path}/{name}", "this broker has no such volume", nearest(name, VOLUMES))
        found[name] = (_LOG if name == "log" else Record({}, {})).read(item, f"{path}/{name}")
    return found


def _storage(value: Json, path: str, volumes: Mapping[str, Json]) -> Json:
    found = _STORAGE.read(value, path)
    assert isinstance(found, dict)
    for name, hint in NOT_YET.items():
        if found.pop(name) not in (None, "", False):
            raise ConfigError(f"{path}/{name}", "this is not supported", hint)
    volume = found["volume"]
    named = volume.get("id") if isinstance(volume, dict) else volume
    given = isinstance(volume, dict) and volume.get("dir") is not None
    if named == "log" and not given and "log" not in volumes:
        raise ConfigError(f"{path}/volume", "volume 'log' has no directory", 'write volumes: {log: {dir: "…"}}')
    _check_prefix(cast("str | None", found["strip_prefix"]), cast(str, found["key_expr"]), f"{path}/strip_prefix")
    return found


def _check_name(name: str, path: str) -> None:
    """The name of a storage is that of its directory, and a chunk of keys: it must not lead elsewhere."""
    is_bad = not name or len(name) > NAME_CHARS or set(name) & set("*?#$ /\\\0") or not name.isprintable()
    if is_bad or name == "default" or name.startswith((".", "@")):
        raise ConfigError(path, f"{name!r} cannot be the name of a storage", "use letters, digits, '-' and '_'")


def _check_prefix(prefix: str | None, key_expr: str, path: str) -> None:
    if not prefix:
        return
    if "*" in prefix or "$" in prefix:
        raise ConfigError(path, f"{prefix!r} has wildcards", "give chunks that all keys begin with, such as 'home'")
    if f"{key_expr}/".startswith(f"{prefix}/"):
        return
    hint = "give the chunks that key_expr begins with, without a slash at the end, or leave it out"
    raise ConfigError(path, f"not all keys of {key_expr!r} begin with {prefix!r}", hint)


def store_settings(plugins: Json) -> StoreSettings | None:
    """What a checked configuration says of storages; None if nothing is kept."""
    manager = plugins.get(MANAGER) if isinstance(plugins, dict) else None
    if not isinstance(manager, dict):
        return None
    from elea.node.storage.settings import DEFAULT_LOG, StorageSettings, StoreSettings

    # Entries set one by one have not been checked together.
    manager = cast("dict[str, Json]", _manager(manager, f"plugins/{MANAGER}"))
    volumes = cast("dict[str, dict[str, Json]]", manager["volumes"])
    log = volumes.get("log")
    storages = tuple(
        _settings(name, item, log) for name, item in cast("dict[str, dict[str, Json]]", manager["storages"]).items()
    )
    default = None
    if log is not None:
        default = _aligned(
            StorageSettings(
                DEFAULT_LOG, "**", f"{log['dir']}/{DEFAULT_LOG}", complete=False, relaxed=log["sync"] == "relaxed"
            ),
            log["replication"],
        )
    _check_directories([*storages, *(() if default is None else (default,))])
    return StoreSettings(storages, default) if storages or default is not None else None


def _aligned(settings: StorageSettings, replication: Json) -> StorageSettings:
    if not isinstance(replication, dict):
        return settings
    return replaced(
        settings,
        align_with=tuple(cast("list[str]", replication["peers"])),
        align_interval=cast(float, replication["interval"]),
        align_delay=cast(float, replication["propagation_delay"]) / 1000,
    )


def _settings(name: str, item: dict[str, Json], log: Mapping[str, Json] | None) -> StorageSettings:
    from elea.node.storage.settings import StorageSettings

    volume = item["volume"]
    directory: str | None = None
    if isinstance(volume, dict) and volume.get("dir") is not None:
        directory = cast(str, volume["dir"])
    elif (volume.get("id") if isinstance(volume, dict) else volume) == "log" and log is not None:
        directory = f"{log['dir']}/{name}"
    retain = cast("dict[str, Json]", item.get("retain") or {})
    settings = StorageSettings(
        name,
        cast(str, item["key_expr"]),
        directory,
        complete=bool(item["complete"]),
        relaxed=log is not None and log["sync"] == "relaxed",
        max_age=cast("float | None", retain.get("age")),
        max_bytes=cast("int | None", retain.get("bytes")),
        max_samples=cast("int | None", retain.get("samples")),
        past_cursors=bool(retain.get("past_cursors")),
        strip_prefix=cast("str | None", item["strip_prefix"]) or "",
    )
    return _aligned(settings, item["replication"])


def _check_directories(storages: list[StorageSettings]) -> None:
    seen: dict[str, str] = {}
    for storage in storages:
        if storage.directory is None:
            continue
        other = seen.setdefault(storage.directory, storage.name)
        if other != storage.name:
            path = f"plugins/{MANAGER}/storages/{storage.name}/volume/dir"
            raise ConfigError(path, f"storage {other!r} is in {storage.directory} already", "give each its own")
