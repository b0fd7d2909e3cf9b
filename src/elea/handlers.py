"""Handlers: what becomes of received samples, queries, replies.

Pass a function, a `Callback`, one of the channels, a pair `(function, anything)`, or nothing, wherever a session takes
`handler`. Names and behaviour are those of eclipse-zenoh's `zenoh.handlers`; `Arrow` is ours.
"""

from __future__ import annotations

from elea.api.arrowhandler import Arrow
from elea.api.callbacks import Callback
from elea.api.channels import Handler
from elea.api.sinks import DefaultHandler, FifoChannel, RingChannel

__all__ = ["Arrow", "Callback", "DefaultHandler", "FifoChannel", "Handler", "RingChannel"]
