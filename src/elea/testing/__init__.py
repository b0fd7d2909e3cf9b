"""A simulator: real nodes over simulated links, in virtual time, deterministic by seed. See `Network`."""

from elea.testing.network import Network
from elea.testing.networktrace import Crossing, Fate, Trace
from elea.testing.simnode import Node
from elea.testing.wire import Wire

__all__ = ["Crossing", "Fate", "Network", "Node", "Trace", "Wire"]
