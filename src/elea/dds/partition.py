"""DDS partition, topic and durability to a resource of the early dialects.

Owns the substitution of the papers and the escaping of what their names cannot hold. It goes one way only:
back to DDS nothing is guessed from a name, the properties of the resource tell.
Spec: zenoh-2018 §5.19 and §7.8, dds §1.
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import Final

from elea.model.qos import Durability

__all__ = ["DdsDurability", "path_of", "reader_resource_of", "resource_of"]

_WILDCARDS: Final = re.compile(r"[*?]*\*[*?]*")
# What Z18-RES-02 allows in a name without meaning, less the comma, which dds §1 wants escaped.
_PLAIN: Final = frozenset("-._~!&'()+;=:@")


class DdsDurability(IntEnum):
    """The four kinds of DDS, with their numbers in a parameter list."""

    VOLATILE = 0
    TRANSIENT_LOCAL = 1
    TRANSIENT = 2
    PERSISTENT = 3

    @property
    def kept(self) -> Durability:
        """How the data space keeps such data; nothing stays with a writer, so _LOCAL makes no difference."""
        return _KEPT[self]


_KEPT: Final = {
    DdsDurability.VOLATILE: Durability.VOLATILE,
    DdsDurability.TRANSIENT_LOCAL: Durability.TRANSIENT,
    DdsDurability.TRANSIENT: Durability.TRANSIENT,
    DdsDurability.PERSISTENT: Durability.PERSISTENT,
}

_WRITER_TAGS: Final = {
    Durability.VOLATILE: "",
    Durability.TRANSIENT: "#transient",
    Durability.PERSISTENT: "#persistent",
}

# A reader gets what is kept at least as long as it asks: without markers an expression matches every tag.
_READER_TAGS: Final = {
    Durability.VOLATILE: "",
    Durability.TRANSIENT: "#{persistent,transient}",
    Durability.PERSISTENT: "#persistent",
}


def path_of(partition: str, *, separator: str = ".") -> str | None:
    """The path of a partition, empty for the default one; None when a part is empty: it cannot be mapped.

    Args:
        separator: what stands between the parts of a partition name; empty when names have no parts.

    Raises:
        ValueError: the separator holds a wildcard, which would make the substitution ambiguous.

    >>> path_of("myhouse.*.bedroom"), path_of("*?*?"), path_of("a..b")
    ('myhouse/**/bedroom', '??**', None)
    """
    if "*" in separator or "?" in separator:
        raise ValueError(f"separator {separator!r} holds a wildcard; choose other characters")
    if separator and separator != "/":
        # A separator such as `./` can come into being by a replacement, so one pass is not enough.
        while separator in partition:
            partition = partition.replace(separator, "/")
    # The papers replace `**` by `*` and `*?` by `?*` until nothing changes. The end of that is known: every
    # run of wildcards has its `?` first and one `*` last, here already doubled because a DDS `*` crosses
    # separators.
    path = _WILDCARDS.sub(lambda run: "?" * run[0].count("?") + "**", partition)
    return _escaped(path, keep="/*?") if _mappable(path) else None


def resource_of(
    partition: str,
    topic: str,
    durability: DdsDurability = DdsDurability.VOLATILE,
    *,
    separator: str = ".",
    scheme: str = "zenoh://",
) -> str | None:
    """The resource a writer declares, tagged with its own durability; None when it cannot be mapped.

    >>> resource_of("a.*", "T", DdsDurability.TRANSIENT)
    'zenoh://a/**/T#transient'
    >>> resource_of("", "T")
    'zenoh:///T'
    """
    name = _name_of(partition, topic, separator)
    return None if name is None else scheme + name + _WRITER_TAGS[durability.kept]


def reader_resource_of(
    partition: str,
    topic: str,
    durability: DdsDurability = DdsDurability.VOLATILE,
    *,
    separator: str = ".",
    scheme: str = "zenoh://",
) -> str | None:
    """The resource a reader subscribes to: every tag that keeps data at least as long as it asks.

    >>> reader_resource_of("p", "T", DdsDurability.TRANSIENT_LOCAL)
    'zenoh://p/T#{persistent,transient}'
    """
    name = _name_of(partition, topic, separator)
    return None if name is None else scheme + name + _READER_TAGS[durability.kept]


def _name_of(partition: str, topic: str, separator: str) -> str | None:
    path = path_of(partition, separator=separator)
    if path is None or not topic or not _mappable(topic):
        return None
    name = f"{path}/{_escaped(topic, keep='/')}"
    # Z18-RES-06: the properties of a resource are read under this name, and its declaration is refused.
    return None if name.endswith("/property") else name


def _mappable(path: str) -> bool:
    """Whether no part of the path is empty; the empty path itself is the default partition."""
    return not path or "" not in path.split("/")


def _escaped(text: str, *, keep: str) -> str:
    return "".join(c if c in keep or c in _PLAIN or _alphanumeric(c) else _percent(c) for c in text)


def _alphanumeric(c: str) -> bool:
    return c.isascii() and c.isalnum()


def _percent(c: str) -> str:
    return "".join(f"%{octet:02X}" for octet in c.encode("utf-8", "surrogatepass"))
