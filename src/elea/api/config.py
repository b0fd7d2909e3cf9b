"""`Config`: the configuration of a node, checked entry by entry.

Names, defaults and nesting are those of eclipse-zenoh 1.10, so that its files and programs work unchanged; what it
swallows in silence (an entry it does not know inside of a list, a negative size) is an error here.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, ClassVar, Final, NoReturn

from elea.api.configschema import SCHEMA
from elea.api.json5 import Json, parse
from elea.api.kinds import Section, nearest
from elea.model.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Config"]

_PLUGINS: Final = "plugins"


class Config:
    """What a session is opened with.

    >>> config = Config.from_json5('{mode: "client", connect: {endpoints: ["tcp/localhost:7447"]}}')
    >>> config.insert_json5("scouting/multicast/enabled", "false")
    >>> config.get_json("mode"), config.get_json("scouting/multicast/enabled")
    ('"client"', 'false')
    """

    __slots__ = ("_tree",)
    _tree: dict[str, Json]

    DEFAULT_CONFIG_PATH_ENV: ClassVar[str] = "ZENOH_CONFIG"

    def __init__(self) -> None:
        self._tree = {name: _copied(value) for name, value in SCHEMA.default().items()}

    @classmethod
    def from_env(cls) -> Config:
        """The configuration in the file that the environment variable ZENOH_CONFIG names."""
        path = os.environ.get(cls.DEFAULT_CONFIG_PATH_ENV)
        if path is None:
            name = cls.DEFAULT_CONFIG_PATH_ENV
            raise ConfigError(name, "environment variable not found", "set it to the path of a configuration file")
        return cls.from_file(path)

    @classmethod
    def from_file(cls, path: str | Path) -> Config:
        """The configuration in a file: `.json5`, `.json`, `.toml`, and `.yaml` where PyYAML is installed."""
        from pathlib import Path  # not with the module: it costs 5 ms, and most configurations are in no file

        file = Path(path)
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(str(path), f"cannot be read: {error}", "check the path") from error
        if not text:
            raise ConfigError(str(path), "the file is empty", "write at least {}")
        return cls._from_value(_parse_file(file, text))

    @classmethod
    def from_json5(cls, json: str) -> Config:
        """The configuration in a JSON5 text; what it does not say has its default."""
        return cls._from_value(parse(_text("json", json), "json5"))

    @classmethod
    def _from_value(cls, value: Json) -> Config:
        made = cls.__new__(cls)
        # A copy, because lists and objects of the defaults are shared.
        tree = _copied(SCHEMA.read(value, ""))
        assert isinstance(tree, dict)
        made._tree = tree
        return made

    def get_json(self, key: str) -> str:
        """The JSON text of the entry or section at `key`, a path such as `transport/unicast`.

        Raises:
            ConfigError: there is no such entry.
        """
        section, value = SCHEMA, self._tree
        names = _names(key)
        for depth, name in enumerate(names):
            entry = section.entries.get(name)
            if entry is None:
                _unknown(key, name, section)
            if not isinstance(entry, Section):
                if names[depth + 1 :] and name != _PLUGINS:
                    _unknown(key, name, None)
                return _dumps(_descend(value[name], names[depth + 1 :], key))
            section = entry
            below = value[name]
            assert isinstance(below, dict)
            value = below
        if not names:
            _unknown(key, "", SCHEMA)
        return _dumps(section.shown(value))

    def insert_json5(self, key: str, value: str) -> None:
        """Set the entry or section at `key` to a value in JSON5.

        Of a section, the entries that `value` leaves out go back to their defaults.

        Raises:
            ConfigError: there is no such entry, or the value is none of its kind; nothing is changed then.
        """
        section, tree = SCHEMA, self._tree
        names = _names(key)
        new = parse(_text("value", value), key)
        for depth, name in enumerate(names):
            entry = section.entries.get(name)
            if entry is None:
                _unknown(key, name, section)
            rest = names[depth + 1 :]
            if not isinstance(entry, Section):
                if rest and name != _PLUGINS:
                    _unknown(key, rest[0], None)
                tree[name] = _put(tree[name], rest, new, key) if rest else entry.kind.read(new, "/".join(names))
                return
            if not rest:
                tree[name] = _copied(entry.read(new, "/".join(names)))
                return
            section = entry
            below = tree[name]
            assert isinstance(below, dict)
            tree = below
        _unknown(key, "", SCHEMA)

    def __str__(self) -> str:
        return _dumps(SCHEMA.shown(self._tree), sort=True)

    def __repr__(self) -> str:
        changes = _dumps(_masked(self._changes()), separators=(", ", ": "))
        return f"Config.from_json5({changes!r})"

    def _changes(self) -> Json:
        """What differs from the defaults; hidden entries are left out, because they may be secrets."""
        return _difference(SCHEMA.shown(self._tree), SCHEMA.shown(SCHEMA.default()))

    def _at(self, path: str) -> Json:
        """The value at a path known to exist, for `Settings`."""
        value: Json = self._tree
        for name in path.split("/"):
            assert isinstance(value, dict)
            value = value[name]
        return value


_SECRETS: Final = ("password", "listen_private_key_base64", "connect_private_key_base64", "private_key_pem")


def _masked(value: Json) -> Json:
    """What may be logged: without passwords and keys."""
    if isinstance(value, dict):
        return {name: "***" if name in _SECRETS and item else _masked(item) for name, item in value.items()}
    return value


def _copied(value: Json) -> Json:
    """A value that shares nothing which could change."""
    if isinstance(value, dict):
        return {name: _copied(item) for name, item in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list) else value


def _names(key: str) -> list[str]:
    return [name for name in _text("key", key).split("/") if name]


def _text(argument: str, value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"argument {argument!r}: {type(value).__name__!r} object is not text")
    return value


def _unknown(key: str, name: str, section: Section | None) -> NoReturn:
    if section is None:
        raise ConfigError(key, "there is no such entry", "set the entry above it as a whole")
    raise ConfigError(key or "/", "there is no such entry", nearest(name, section.entries))


def _dumps(value: Json, *, separators: tuple[str, str] = (",", ":"), sort: bool = False) -> str:
    import json  # not with the module: to open a session, nothing is written

    return json.dumps(value, separators=separators, sort_keys=sort, ensure_ascii=False)


def _descend(value: Json, names: list[str], key: str) -> Json:
    """What lies below an entry of the plugins; every other entry is read and set as a whole."""
    for name in names:
        if not isinstance(value, dict) or name not in value:
            _unknown(key, name, None)
        value = value[name]
    return value


def _put(tree: Json, names: list[str], value: Json, key: str) -> Json:
    """The configuration of the plugins with one entry set; objects on the way are made."""
    if not names:
        return value
    if tree is not None and not isinstance(tree, dict):
        raise ConfigError(key, f"{names[0]!r} would be put into what is no object", "set the entry above it first")
    changed = dict(tree or {})
    changed[names[0]] = _put(changed.get(names[0]), names[1:], value, key)
    return changed


def _difference(value: Json, default: Json) -> Json:
    if not isinstance(value, dict) or not isinstance(default, dict):
        return value
    return {
        name: _difference(item, default.get(name))
        for name, item in value.items()
        if name not in default or item != default[name]
    }


def _parse_file(file: Path, text: str) -> Json:
    if file.suffix in (".json", ".json5"):
        return parse(text, str(file))
    if file.suffix == ".toml":
        import tomllib

        try:
            return tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(str(file), f"no TOML: {error}") from error
    if file.suffix in (".yaml", ".yml"):
        return _parse_yaml(file, text)
    raise ConfigError(str(file), f"unsupported file type {file.suffix!r}", "use .json5, .json, .toml or .yaml")


def _parse_yaml(file: Path, text: str) -> Json:
    try:
        yaml = importlib.import_module("yaml")
    except ImportError as error:
        raise ConfigError(str(file), "reading YAML needs PyYAML", "pip install pyyaml, or use JSON5") from error
    try:
        value: Json = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError(str(file), f"no YAML: {error}") from error
    return value
