"""Which links that a node was told to open are there, and since when others are not."""

from __future__ import annotations

import elea
from tests.unit.node.storage.serving import Broker, configuration, eventually, manager

MEMORY = {"key_expr": "home/**", "volume": "memory"}


def test_peer_knows_which_of_its_brokers_are_away_and_that_one_has_been() -> None:
    one, other = Broker(manager(home=MEMORY)), Broker(manager(home=MEMORY))
    locators = [one.locator, other.locator]
    with elea.open(configuration(mode="peer", connect={"endpoints": locators})) as peer:
        runtime = peer._runtime
        before = runtime.standing()
        first = runtime.standing(one.locator)
        assert before is not None
        assert runtime.wanted == tuple(locators)
        assert runtime.away() == {}
        assert runtime.locator_of(bytes(other.session.zid())) == other.locator
        assert runtime.locator_of(b"\x01") is None

        other.session.close()

        eventually(lambda: runtime.standing() is None, "the link is missed")
        assert runtime.standing(one.locator) == first
        (away,) = runtime.away().items()
        assert away[0] == other.locator
        assert away[1] >= 0.0
        again = Broker(manager(home=MEMORY), other.locator)
        eventually(lambda: runtime.standing() is not None, "it is back")
        assert runtime.standing() != before  # whoever asked before has not heard it to the end
        assert runtime.away() == {}
        again.session.close()
    one.session.close()


def test_client_wants_the_first_that_answers_and_nobody_else() -> None:
    one, other = Broker(manager(home=MEMORY)), Broker(manager(home=MEMORY))
    with elea.open(configuration(mode="client", connect={"endpoints": [one.locator, other.locator]})) as client:
        assert client._runtime.wanted == (one.locator,)
        other.session.close()
        assert client._runtime.away() == {}
    one.session.close()
