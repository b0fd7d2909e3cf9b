"""A client of the early dialects for devices: one object, a few hundred bytes of state, no threads, no clock.

Bytes and the time go in, packets come out. The package imports nothing but itself and keeps to what MicroPython knows,
so a board needs these few files. It has what a device uses: one conduit, no resource spaces, one transaction at a time,
windows of a few messages. What comes is checked, bounded and answered as the papers want; its tests compare what it
sends with the generated codecs, and let it talk to the full machines over bad networks.

>>> device = Client(b"lamp", mtu=20)
>>> device.open(0.0)
>>> [packet.hex() for packet in device.poll(0.0)]
['0301046c616d706400']
"""

from elea.tiny.client import Client, turn
from elea.tiny.octets import Event, forget, publisher, resource, selection, subscriber

__all__ = ["Client", "Event", "forget", "publisher", "resource", "selection", "subscriber", "turn"]
