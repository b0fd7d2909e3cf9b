"""Acknowledged samples that travel together: what tasks or threads put at the same time and one log keeps.

A request for each of them would cost client and broker 90 µs each; together they cost a tenth. A store says with its
first acknowledgement which keys its log keeps (`keys`); later samples of these keys are put in groups, as
`@store/puts/<keys>`. A sample keeps its own number and its own outcome. Whatever goes wrong with a group as such, its
samples are sent again one by one: that is safe, for they keep their numbers, and it says what is wrong with each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from elea.api.receipt import Receipt, again, made_of
from elea.api.storecall import Call, query
from elea.model import keyexpr
from elea.model.errors import DecodeError, EleaError, InvalidKeyExpr, KeptElsewhere, OperationTimeout, StoreError
from elea.model.limits import PUTS_BYTES, PUTS_SAMPLES
from elea.wire.puts import Given, write_puts

if TYPE_CHECKING:
    from elea.api.session import Session

__all__ = ["Alone", "Group", "Kept", "Lane", "Outcome"]

KNOWN: Final = 10_000
"""Keys whose log is remembered; then all are forgotten and found again."""


class Lane(NamedTuple):
    """What the samples of one group have in common."""

    keys: str
    durability: str | None
    qos: int
    timeout: float


class Alone(NamedTuple):
    """The outcome of a sample that is to be sent on its own, until `deadline` if it has been tried before."""

    deadline: float | None


Outcome = Receipt | EleaError | Alone


class Kept:
    """Which keys logs keep, as far as stores have said so; by the durability that was asked for."""

    def __init__(self) -> None:
        self._of: dict[tuple[str, str | None], str] = {}
        self._exprs: dict[str | None, list[str]] = {}
        self._refused: set[str] = set()

    def find(self, key: str, durability: str | None) -> str | None:
        """The keys of the log that keeps a key; None if it is not known."""
        found = self._of.get((key, durability))
        if found is None:
            for expr in self._exprs.get(durability, ()):
                if keyexpr.includes(expr, key):
                    self._remember(key, durability, expr)
                    return expr
        return found

    def has(self, key: object, durability: str | None) -> bool:
        """Whether it is a text, and a key of which it is known who keeps it."""
        return type(key) is str and (key, durability) in self._of

    def learn(self, key: str, durability: str | None, expr: object) -> None:
        """A log that says that it keeps these keys has stored a sample of one of them."""
        if not isinstance(expr, str) or expr in self._refused:
            return
        exprs = self._exprs.get(durability, [])
        if expr not in exprs:
            try:
                keyexpr.check(expr)
            except InvalidKeyExpr:
                return
            # Before those that include it: of two logs a broker asks the smaller one first, or says so for each key.
            at = next((at for at, other in enumerate(exprs) if keyexpr.includes(other, expr)), len(exprs))
            self._exprs[durability] = [*exprs[:at], expr, *exprs[at:]]
        if keyexpr.includes(expr, key):
            self._remember(key, durability, expr)

    def refuse(self, expr: str) -> None:
        """A store does not understand groups for these keys."""
        self._refused.add(expr)
        self._exprs = {durability: [one for one in many if one != expr] for durability, many in self._exprs.items()}
        self._of.clear()

    def forget(self, key: str, durability: str | None) -> None:
        """A key is not kept where it was thought to be."""
        self._of.pop((key, durability), None)

    def _remember(self, key: str, durability: str | None, expr: str) -> None:
        if len(self._of) >= KNOWN:
            self._of.clear()
        self._of[key, durability] = expr


class Group:
    """Samples of one lane, from the request to the outcome of each."""

    __slots__ = ("_given", "_kept", "_octets", "_session", "call", "lane")

    def __init__(self, session: Session, kept: Kept, lane: Lane) -> None:
        self._session = session
        self._kept = kept
        self._given: list[Given] = []
        self._octets = 0
        self.lane = lane
        self.call: Call | None = None

    def __len__(self) -> int:
        return len(self._given)

    def takes(self, lane: Lane) -> bool:
        """Whether one more sample of a lane may join."""
        return lane == self.lane and self._octets < PUTS_BYTES and len(self._given) < PUTS_SAMPLES

    def add(self, given: Given) -> None:
        """Let a sample join."""
        self._given.append(given)
        self._octets += len(given[0]) + len(given[1] or b"") + len(given[4] or b"")

    def prepare(self, given: list[Given]) -> Call:
        """The request for those samples of the group that are still waited for.

        Raises:
            EncodeError: a sample has a value that no request can carry.
        """
        self._given = given
        lane, before = self.lane, self.call
        parameters = "" if lane.durability is None else f"durability={lane.durability}"
        body = query(parameters, write_puts(self._given))
        call = Call(self._session, "puts", lane.keys, body, timeout=lane.timeout, qos=lane.qos)
        call.known = True
        if before is not None:
            call.resume(before)
        self.call = call
        return call

    def judge(self) -> float | list[Outcome]:
        """What the attempt has come to: an outcome for each sample, or the seconds after which to try again."""
        call = self.call
        assert call is not None
        count = len(self._given)
        if call.is_cut_off:
            return [Alone(call.deadline)] * count
        try:
            pause = call.judge()
            return self._outcomes(call.answer()) if pause is None else pause
        except DecodeError:
            self._kept.refuse(self.lane.keys)
            return [Alone(call.deadline)] * count
        except OperationTimeout:
            return [OperationTimeout(call.why(given[0].decode())) for given in self._given]
        except EleaError as error:
            return [again(error) for _ in range(count)]

    def _outcomes(self, answer: dict[str, Any]) -> list[Outcome]:
        log, epoch = answer.get("log"), answer.get("epoch")
        positions, repeated, refused = answer.get("positions"), answer.get("repeated"), answer.get("refused")
        if (
            not (isinstance(log, str) and isinstance(epoch, str) and isinstance(positions, list))
            or not (isinstance(repeated, list) and isinstance(refused, dict))
            or not all(position is None or isinstance(position, int) for position in positions)
        ):
            raise StoreError(f"the answer of a store to a group makes no sense: {str(answer)[:200]}")
        if len(positions) != len(self._given):
            raise StoreError(f"a store answers for {len(positions)} samples of {len(self._given)}")
        restamped = answer.get("restamped", ())
        if not repeated and not refused and not restamped:
            return [Receipt(log, epoch, position) for position in positions]
        found: list[Outcome] = []
        known = {at for at in repeated if isinstance(at, int)}
        others = {at for at in restamped if isinstance(at, int)} if isinstance(restamped, list) else set()
        for at, position in enumerate(positions):
            form = refused.get(str(at))
            receipt = Receipt(log, epoch, position, 1, int(at in known), int(at in others))
            found.append(receipt if form is None else self._refusal(at, form))
        return found

    def _refusal(self, at: int, form: object) -> Outcome:
        error = made_of(form if isinstance(form, dict) else {})
        if isinstance(error, KeptElsewhere) and self.call is not None:
            self._kept.forget(self._given[at][0].decode(), self.lane.durability)
            return Alone(self.call.deadline)
        return error
