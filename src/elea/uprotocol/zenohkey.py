"""Which key a message is put to: `up/`, the five parts of its source, and the five of its sink.

Numbers are upper-case hex without leading zeros, wildcards `*`, the parts of a sink that is not there `{}`; an address
without authority gets that of the transport.
"""

from __future__ import annotations

import re
from typing import Final

from elea.uprotocol.attributes import UMessageType
from elea.uprotocol.status import InvalidUri
from elea.uprotocol.uuri import ANY_AUTHORITY, ANY_INSTANCE, ANY_RESOURCE, ANY_TYPE, ANY_VERSION, UUri

__all__ = ["ALL_KEYS", "NO_SINK", "key_of", "key_problem", "resolved", "uris_of"]

PREFIX: Final = "up"
ALL_KEYS: Final = "up/**"
NO_PART: Final = "{}"
NO_SINK: Final = "/".join([NO_PART] * 5)

_CHUNKS: Final = 11
_HEX: Final = re.compile(r"0|[1-9A-F][0-9A-F]*")
_MOST: Final = (ANY_TYPE, ANY_INSTANCE, ANY_VERSION, ANY_RESOURCE)


def key_of(source: UUri, sink: UUri | None, authority: str) -> str:
    """The key to put a message to, or the key expression that a filter stands for.

    >>> key_of(UUri.parse("/10AB/3/80CD"), None, "192.168.1.100")
    'up/192.168.1.100/10AB/0/3/80CD/{}/{}/{}/{}/{}'
    >>> key_of(UUri.parse("//*/FFFFFFFF/FF/FFFF"), UUri.parse("//my-host2/CD/4/B"), "my-host2")
    'up/*/*/*/*/*/my-host2/CD/0/4/B'
    """
    return f"{PREFIX}/{_half(source, authority)}/{NO_SINK if sink is None else _half(sink, authority)}"


def _half(uri: UUri, authority: str) -> str:
    numbers = (uri.ue_type, uri.ue_instance, uri.ue_version_major, uri.resource_id)
    parts = ("*" if value == wild else f"{value:X}" for value, wild in zip(numbers, _MOST, strict=True))
    return "/".join((uri.authority_name or authority, *parts))


def uris_of(key: str) -> tuple[UUri, UUri | None]:
    """Source and sink of a key.

    Raises:
        InvalidUri: it is no key of a uProtocol message.
    """
    chunks = key.split("/")
    if len(chunks) != _CHUNKS or chunks[0] != PREFIX:
        raise InvalidUri(key, "a key has 11 chunks, of which the first is 'up'")
    sink = chunks[6:]
    return _uri(key, chunks[1:6]), None if sink == [NO_PART] * 5 else _uri(key, sink)


def _uri(key: str, chunks: list[str]) -> UUri:
    numbers = []
    for chunk, wild in zip(chunks[1:], _MOST, strict=True):
        if chunk != "*" and not _HEX.fullmatch(chunk):
            raise InvalidUri(key, f"chunk {chunk!r} is no upper-case hexadecimal number")
        numbers.append(wild if chunk == "*" else int(chunk, 16))
    kind, instance, version, resource = numbers
    return UUri.of(chunks[0] or ANY_AUTHORITY, kind, version, resource, instance=instance)


def resolved(uri: UUri, key: str, *, sink: bool = False) -> UUri:
    """The address with the authority that the key of its message says, if it has none itself.

    A publisher may leave out its authority: the attributes travel as they are, only the key has it then.
    """
    if uri.authority_name:
        return uri
    found = uris_of(key)[1 if sink else 0]
    return uri if found is None else uri.with_authority(found.authority_name)


def key_problem(key: str, type: int, source: UUri | None, sink: UUri | None) -> str:
    """Why a message with these addresses must not have come by this key; empty if it may.

    Access rules know keys only, so a message that says something else of itself would get round them.
    """
    try:
        sender, receiver = uris_of(key)
    except InvalidUri as error:
        return error.problem
    matches = source is not None and source.with_authority(sender.authority_name) == sender
    # A publish message is for everybody; a streamer may have said in its sink for which authority it is.
    if type != UMessageType.PUBLISH:
        expected = None if sink is None or receiver is None else sink.with_authority(receiver.authority_name)
        matches = matches and expected is not None and expected == receiver
    return "" if matches else f"its attributes say from {source} to {sink}"
