"""The durability service: logs of samples, in memory or on disk. No sockets, no clock, no threads of its own.

Importing it imports pyarrow, so only a broker that keeps something does.
"""

from elea.store.catalogue import Damage
from elea.store.columns import SCHEMA
from elea.store.commit import Committer, Outcome
from elea.store.disk import Sync
from elea.store.log import Log, memory_log, open_log
from elea.store.logreads import Range
from elea.store.record import DEL, PUT, Receipt, Record, Stored
from elea.store.retention import Retention, Trimmed
from elea.store.shelf import State

__all__ = [
    "DEL",
    "PUT",
    "SCHEMA",
    "Committer",
    "Damage",
    "Log",
    "Outcome",
    "Range",
    "Receipt",
    "Record",
    "Retention",
    "State",
    "Stored",
    "Sync",
    "Trimmed",
    "memory_log",
    "open_log",
]
