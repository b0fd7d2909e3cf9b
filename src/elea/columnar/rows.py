"""The layout of rows and of what the kernels answer."""

from __future__ import annotations

from typing import Final

__all__ = [
    "ANSWERS",
    "ANY_MORE",
    "ANY_QOS",
    "AT",
    "ATTACHMENT",
    "CODE",
    "ENCODING",
    "FLAGS",
    "FRAMES",
    "GROUP",
    "HASH",
    "HEADER",
    "KIND",
    "LENGTH",
    "MORE",
    "NEW_NAME",
    "NTP64",
    "OTHER_GROUP",
    "PAYLOAD",
    "PLAIN_WIDTH",
    "ROWS",
    "SCHEMA",
    "SCOPE",
    "SLOT",
    "SN",
    "SOURCE",
    "SOURCE_EID",
    "SOURCE_SN",
    "STAMP",
    "STOP",
    "STOPPED",
    "SUFFIX",
    "WIDTH",
]

# The columns of a row. A region is two of them, offset and length; an offset of -1 says that there is none.
CODE: Final = 0
FLAGS: Final = 1
PAYLOAD: Final = 2
PLAIN_WIDTH: Final = 4
"""So many are filled when no message of a run says more than its payload."""

NTP64: Final = 4
STAMP: Final = 5
ENCODING: Final = 7
SCHEMA: Final = 8
ATTACHMENT: Final = 10
SOURCE: Final = 12
SOURCE_EID: Final = 14
SOURCE_SN: Final = 15
WIDTH: Final = 16

KIND: Final = 0x100
"""In the flags, above the byte of the QoS: it is a deletion."""

MORE: Final = 0x200
"""In the flags: it has more than a payload."""

# What `scan` answers: STOP, FRAMES and SN say in which frame it stopped; six are said of a name that has no code yet.
ROWS, STOPPED, AT, ANY_MORE, ANY_QOS, GROUP, SLOT, HASH, HEADER, SCOPE, SUFFIX, LENGTH, STOP, FRAMES, SN = range(15)
ANSWERS: Final = 15

NEW_NAME: Final = 1
OTHER_GROUP: Final = 2
