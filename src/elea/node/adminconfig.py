"""Entries of the configuration that can be changed over the admin space: puts on `@/<id>/<role>/config/<entry>`.

Only where `adminspace/permissions/write` says so, and only by those whom access rules let put there. What cannot be
changed, or makes no sense, is logged and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from elea.io.dispatch import Mailbox
from elea.model.errors import EleaError
from elea.model.logger import logger
from elea.model.node_id import NodeId
from elea.wire.details import is_deletion

if TYPE_CHECKING:
    from elea.node.node import Node
    from elea.node.route import SampleRun

__all__ = ["listen_for_changes"]

_log = logger("elea.node")


def listen_for_changes(node: Node, change: Callable[[str, bytes | None], None]) -> None:
    """Have `change` called with an entry and its new JSON5, None for its default.

    Args:
        change: raises an `EleaError` if it cannot be done.
    """
    below = f"@/{NodeId(node.node_id)}/{node.role}/config/"

    def arrived(samples: SampleRun) -> None:
        entry = str(samples.key).removeprefix(below)
        for sample in samples.run:
            try:
                change(entry, None if is_deletion(sample[4]) else sample[5])
            except EleaError as error:
                _log.warning("configuration not changed: entry=%s problem=%s", entry[:200], error)
            else:
                _log.info("configuration changed: entry=%s", entry)

    node.local.subscribe(f"{below}**", Mailbox(arrived))
