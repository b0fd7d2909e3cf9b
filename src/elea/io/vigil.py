"""Whether a thread that waits for a link waits awake.

Waking a thread on an idle core takes 15 to 60 µs, and is work for the one who wakes and the one who is woken. Where an
answer comes soon, looking for it again and again is no more work than that, and saves the time. So a wait is begun
*awake* and, if nothing has come at its `limit`, gone on with asleep, where all of this holds:

- There is talk: this end has sent something since its last wait began. Who only receives never waits awake.
- The wait before was short. Idle sessions, keep-alives and slow answers never wait awake.
- It pays. A hit earns what a wake-up costs, less the CPU it took; a wait in vain, or one in which others had the core,
  costs what it took. Who has spent all *rests*: at first shortly, as the others wait longer meanwhile and would soon
  rest, too; and longer each time that nothing comes of trying again.
- It is in nobody's way. Who passes things on between others who wait awake themselves, on the same core, pays for the
  time in which they had it: with fewer cores than such waits, it is better that the ends of the talk are awake.
- The machine has a core to spare. Programs that compute keep ours for milliseconds once they have it. Such a *crowd*
  means a long rest, and a longer one if it is still there the next time.

Nothing here knows a clock or a socket: times are arguments.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "COURTESY",
    "CROWD",
    "EARNED",
    "EARNED_BETWEEN",
    "LEAST_CROWDED",
    "LIMIT",
    "LONGEST",
    "MOST_CROWDED",
    "NEAR",
    "PURSE",
    "REMEMBERED",
    "REST",
    "Vigil",
]

LIMIT: Final = 250e-6
"""Seconds a wait is awake at most. What is waited for takes a few wake-ups itself as long as nobody else is awake; once
all are, a wait takes 20 to 60 µs."""

NEAR: Final = 600e-6
"""Seconds above which a wait is too long for the next to be tried awake: a way through a broker and back takes 200 to
400 µs where everybody sleeps."""

EARNED: Final = 150e-6
"""CPU seconds earned by a hit at an end of a talk: a wake-up here, and what the waits of all others are shorter by. A
wait takes 60 to 110 µs; if that did not pay, all would rest as soon as one does, since their waits are longer then."""

EARNED_BETWEEN: Final = 100e-6
"""The same for one who passes things on: a wake-up, and no more."""

COURTESY: Final = 4.0
"""How many times the seconds are charged to one who passes things on in which others had the core who wait awake, too:
who shares the core has it half of the time, of 40 µs."""

PURSE: Final = 1e-3
"""What can be saved up: one mishap, a collection of garbage say, is no reason to stop; the second one is."""

REST: Final = 8
"""How many times as long as the loss a rest is, at first; they double up to 512 times that, where trying does not pay,
so that far less than 1/1000 of the time is lost by it."""

LONGEST: Final = 4.0
"""Seconds of the longest rest."""

CROWD: Final = 2e-3
"""Seconds of a wait in which others had the core, from which on there is a crowd: others who wait awake are briefer."""

LEAST_CROWDED: Final = 0.004
"""Seconds of the first rest for a crowd: most are over by then. They double while it is there, until nobody has taken
the core for as long, nor for `REMEMBERED`."""

REMEMBERED: Final = 0.25
"""Seconds for which a crowd is remembered at least."""

MOST_CROWDED: Final = 16.0

_SLOWEST: Final = REST << 9
_SLACK: Final = 50e-6  # seconds beyond its limit that a wait may take although nobody else had the core


class Vigil:
    """The waits of one link: for each `begin`; then `came` or `missed` if it is awake; `ended` for one asleep."""

    __slots__ = (
        "_begun", "_crowded", "_earned", "_factor", "_last", "_purse", "_rests_until", "_sent", "hits", "limit",
        "misses", "rests",
    )  # fmt: skip

    def __init__(self, limit: float = LIMIT, earned: float = EARNED) -> None:
        self.limit = limit
        self._earned = earned
        self.hits = 0
        self.misses = 0
        """Waits that were awake in vain, or in which others had the core."""
        self.rests = 0
        self._sent = 0
        self._begun = 0.0
        self._last = NEAR  # seconds of the wait before
        self._purse = PURSE  # in seconds: enough to try some times, until the other end has begun to wait awake
        self._factor = REST
        self._rests_until = 0.0
        self._crowded = 0.0  # seconds of the last rest for a crowd

    def begin(self, sent: int, now: float) -> bool:
        """A wait begins, after so many batches `sent` over the link; whether it is to be awake, until `now + limit`."""
        return self.talks(sent, now) and now >= self._rests_until

    def talks(self, sent: int, now: float) -> bool:
        """The same for one whose waits are in another's account: whether there is talk, and the wait before short."""
        talks = sent != self._sent
        self._sent = sent
        self._begun = now
        return talks and self._last < NEAR

    def again(self, now: float) -> bool:
        """A wait begins, for some links of which one talks; whether it is to be awake, until `now + limit`."""
        self._begun = now
        return now >= self._rests_until

    def ended(self, now: float) -> None:
        """Something has come to one who slept."""
        self._last = now - self._begun

    def came(self, now: float, used: float, in_the_way: bool = False) -> None:
        """Something has come to one who was awake, and used so many seconds of CPU; the rest of them others had the
        core, and if it was `in_the_way` that was no accident.
        """
        self._last = spent = now - self._begun
        if spent > self.limit + _SLACK:
            self._lose(spent, used, now)
            return
        self.hits += 1
        self._purse += self._earned - used
        if in_the_way and spent > used:
            self._purse -= COURTESY * (spent - used)
        if self._purse >= PURSE:
            self._purse = PURSE
            self._factor = REST
        elif self._purse < 0.0:
            self._rest(now)

    def missed(self, now: float, used: float) -> None:
        """Nothing has come to one who was awake: the wait goes on asleep."""
        spent = now - self._begun
        self._lose(spent if spent > self.limit + _SLACK else used, used, now)

    def _lose(self, seconds: float, used: float, now: float) -> None:
        self.misses += 1
        if seconds - used > CROWD:
            self._avoid_crowd(now)
            return
        self._purse -= seconds
        if self._purse < 0.0:
            self._rest(now)

    def _avoid_crowd(self, now: float) -> None:
        self.rests += 1
        again = self._crowded > 0.0 and now - self._rests_until < max(self._crowded, REMEMBERED)
        self._crowded = min(2 * self._crowded, MOST_CROWDED) if again else LEAST_CROWDED
        self._rests_until = now + self._crowded
        self._purse = self.limit

    def _rest(self, now: float) -> None:
        """All is spent: sleep for a while, and then have enough to try again, once or twice."""
        self.rests += 1
        self._rests_until = now + min(self._factor * max(-self._purse, self.limit), LONGEST)
        self._factor = min(self._factor * 2, _SLOWEST)
        self._purse = self.limit
