"""The vehicle of the demo, a uProtocol entity: publishes how it drives, and is told by calls how fast it may.

What it publishes is put without an acknowledgement, as uProtocol has it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from elea.demo.demopublisher import TURN_SECONDS, Publisher, config_of, obey
from elea.demo.drivemessage import Drive
from elea.uprotocol import Publisher as TopicPublisher
from elea.uprotocol import RpcServer, UAttributes, UCode, UPayload, UStatusError, UTransportZenoh, UUri

if TYPE_CHECKING:
    from elea.demo.world import Reading

__all__ = ["SET_LIMIT", "TOPIC", "VEHICLE", "drive"]

VEHICLE: Final = UUri.parse("//demo-vehicle/8010/1/0")
TOPIC: Final = VEHICLE.with_resource(0x8001)
SET_LIMIT: Final = VEHICLE.with_resource(1)

FIRST_LIMIT: Final = 130.0


class Driving:
    """How fast it may drive; the method `SET_LIMIT` changes it."""

    def __init__(self) -> None:
        self.limit = FIRST_LIMIT

    def set_limit(self, _: int, attributes: UAttributes, payload: UPayload | None) -> UPayload:
        """What a caller is answered: the limit as it is now."""
        asked = None if payload is None else payload.unpack(Drive)
        if asked is None or not asked.allowed > 0:
            raise UStatusError(UCode.INVALID_ARGUMENT, "a limit is above 0")
        self.limit = asked.allowed
        return UPayload.protobuf(Drive(origin=asked.origin, allowed=self.limit))

    def message(self, reading: Reading) -> UPayload:
        """What is published of a reading."""
        speed: float = json.loads(reading.payload)["speed"]
        return UPayload.protobuf(Drive(origin=reading.origin, speed=min(speed, self.limit), allowed=self.limit))


def drive(publisher: Publisher, locator: str, commands: Callable[[], Iterator[str]]) -> None:
    """Publish and answer until told to end."""
    import elea

    driving = Driving()
    config: Any = elea.Config.from_json5(json.dumps(config_of(locator)))
    with elea.open(config) as session, UTransportZenoh(session, VEHICLE) as transport, RpcServer(transport) as server:
        server.register_endpoint(None, SET_LIMIT.resource_id, driving.set_limit)
        topic = TopicPublisher(transport)
        while not publisher.is_over:
            for group in publisher.turn():
                publisher.note_tried(len(group))
                for reading in group:
                    topic.publish(TOPIC.resource_id, driving.message(reading))
                publisher.tell()
            obey(publisher, commands())
            publisher.tell()
            time.sleep(TURN_SECONDS)
