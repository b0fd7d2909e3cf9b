"""Runs the demo: starts the processes, lets them be killed if that is wanted, and asks for the accounts in the end."""

from __future__ import annotations

import contextlib
import json
import logging
import random
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from elea.demo.drivejudge import Message
from elea.demo.evidence import alert_origin, gather, to_table
from elea.demo.judge import Latency, Verdict, Window, judge, latency_of
from elea.demo.lamp import LAMP, Lamp, listening
from elea.demo.phone import PHONE, Phone
from elea.demo.processes import POLL_SECONDS, Processes
from elea.demo.world import Origin
from elea.model.errors import DemoFailed

if TYPE_CHECKING:
    import elea

__all__ = ["Options", "Outcome", "Stage"]

LOCATOR_OF_FILE: Final = "tcp/127.0.0.1:7447"
TELL_SECONDS: Final = 1.0
BETWEEN_KILLS: Final = 2
"""Batches with rows that bronze must have got since the last kill."""

SETTLE_SECONDS: Final = 60.0
"""How long windows that are due, and alerts on their way, are waited for before the verdict is final."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What is wanted."""

    rate: float = 1000.0
    seconds: float = 20.0
    kill: bool = False
    keep: bool = False
    place: Path | None = None
    seed: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the run has come to. Times are seconds since it began, unless something else is said."""

    verdict: Verdict
    to_table: Latency | None
    """From the put of a sample to the commit of its row in bronze, of those put when all parts were there."""

    to_alert: Latency | None
    """From the put of a reading to the alert at the subscriber; the same ones."""

    waited: Latency | None
    """To the table, of what was put before, and waited in the log for Spark to start."""

    samples: tuple[tuple[float, float], ...]
    """For each row of bronze: when it was put, and how much later it was in the table."""

    alerts: tuple[tuple[float, float], ...]
    """The same for alerts, until they came."""

    batches: tuple[dict[str, Any], ...]
    windows: tuple[Window, ...]
    marks: dict[str, float]
    """What happened for the first time: `first sample`, `first call`, `Spark`, `first row`, `first alert`,
    `all generations`."""

    calls: Latency | None
    """Of the phone to the vehicle, until they were answered."""

    failed_calls: dict[str, int]
    """By code."""

    drive: tuple[tuple[float, float, float], ...]
    """What the vehicle published: when, its speed, and the limit it was told."""

    kills: tuple[tuple[float, str], ...]
    drivers: int
    publishers: tuple[str, ...]
    began: float
    """Since 1970."""

    seconds: float


@contextlib.contextmanager
def _logged(path: Path) -> Iterator[None]:
    """What this process has to warn of, a broker that was killed for one, goes to a file, as with the others."""
    log = logging.getLogger("elea")
    handler = logging.FileHandler(path, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    log.addHandler(handler)
    before, log.propagate = log.propagate, False
    try:
        yield
    finally:
        log.propagate = before
        log.removeHandler(handler)
        handler.close()


class Stage:
    """One run; `tell` gets what happens as it happens: an event and its facts."""

    def __init__(self, options: Options, tell: Callable[[str, dict[str, Any]], None]) -> None:
        self._options = options
        self._tell = tell
        self._began = time.time()
        self._marks: dict[str, float] = {}
        self._lock = threading.Lock()
        self._kills: list[tuple[float, str]] = []
        self._told = 0.0
        self._chance = random.Random(options.seed)
        self.place = Path(tempfile.mkdtemp(prefix="elea-demo-")) if options.place is None else options.place.absolute()
        self._company = Processes(self.place, tell, self._mark, seed=options.seed)

    def run(self, show: Callable[[Outcome], None]) -> None:
        """From nothing to the accounts, which `show` gets; with `keep` it goes on then until it is interrupted.

        Raises:
            DemoFailed: a process does not do what it should.
        """
        company = self._company
        with contextlib.ExitStack() as stack:
            stack.push(self._clear)
            self.place.mkdir(parents=True, exist_ok=True)
            stack.enter_context(_logged(self.place / "demo.log"))
            lamp = Lamp(self.place, self._mark)
            company.locators += listening(lamp.serial)
            stack.callback(company.end)
            company.start_broker()
            company.start_driver(self._pipeline())
            company.start_publishers(self._options.rate)
            session = stack.enter_context(self._client())
            stack.enter_context(self._listening(session))
            stack.callback(lamp.close)
            lamp.start(session, dict(zip(("modern", "2017 udp", "2018 tcp"), company.locators, strict=False)))
            self._tell("lamp", {"key": LAMP, "nodes": [*lamp.nodes, "Spark"]})
            company.ask_publishers("go")
            company.wait(lambda: lamp.is_there, "all nodes of the lamp see what is put")
            lamp.go()
            with self._calling(session) as phone:
                self._live()
            lamp.hush()
            company.ask_publishers("stop")
            show(self._account(session, phone, lamp))
            if self._options.keep:
                self._stay()

    def _clear(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Leave nothing behind, unless somebody wants to look at it."""
        if self._options.place is None and not self._options.keep and not isinstance(error, DemoFailed):
            shutil.rmtree(self.place, ignore_errors=True)

    def _pipeline(self) -> Path:
        """The file of the pipeline, with the address of this run's broker."""
        text = files("elea.demo").joinpath("demo.toml").read_text(encoding="utf-8")
        file = self.place / "demo.toml"
        file.write_text(text.replace(LOCATOR_OF_FILE, self._company.locator), encoding="utf-8")
        return file

    def _client(self) -> elea.Session:
        import elea

        entries = {
            "mode": "client",
            "connect": {"endpoints": [self._company.locator]},
            "scouting": {"multicast": {"enabled": False}},
        }
        return elea.open(elea.Config.from_json5(json.dumps(entries)))

    @contextlib.contextmanager
    def _listening(self, session: elea.Session) -> Iterator[None]:
        """A subscriber of the alerts that begins with the first one and misses none, whatever happens to the broker."""

        def take(sample: elea.Sample) -> None:
            self._company.heard.alerts.append((alert_origin(sample.payload.to_bytes()), time.time()))
            self._mark("first alert")

        with session.declare_subscriber("alerts/**", take, since=0):
            yield

    @contextlib.contextmanager
    def _calling(self, session: elea.Session) -> Iterator[Phone]:
        """The phone, which calls the vehicle."""
        path = self.place / "ledger" / f"{PHONE}.jsonl"
        phone = Phone(session, path, self._options.seed, lambda: self._mark("first call"))
        phone.start()
        try:
            yield phone
        finally:
            phone.stop()

    # -- what happens --------------------------------------------------------------------------------------------------

    def _live(self) -> None:
        """Publish, and kill, until enough has been seen."""
        company, heard = self._company, self._company.heard
        troubles = ["driver", "broker"] if self._options.kill else []
        self._chance.shuffle(troubles)
        company.wait(lambda: heard.fresh > 0, "the first rows are in a table", self._watch)
        end = time.monotonic() + self._options.seconds
        for trouble in troubles:
            # Not before the tables grow again: a kill that hits nothing shows nothing.
            company.wait(lambda: heard.fresh >= BETWEEN_KILLS, "the tables grow", self._watch)
            time.sleep(self._chance.uniform(0, 1))
            self._kill(trouble)
        company.wait(lambda: heard.fresh > 0, "the tables grow again", self._watch)
        while time.monotonic() < end:
            self._watch()
            time.sleep(POLL_SECONDS)

    def _kill(self, what: str) -> None:
        company = self._company
        self._kills.append((time.time() - self._began, what))
        self._tell("kill", {"what": what, "seconds": round(time.time() - self._began, 1)})
        if what == "driver":
            assert company.driver is not None
            company.driver.kill()
            company.start_driver(self.place / "demo.toml")
        else:
            assert company.broker is not None
            company.broker.kill()
            company.start_broker()
        company.heard.fresh = 0

    def _watch(self) -> None:
        """See that the driver lives, and tell how things are once a second."""
        self._company.see_to_driver()
        now = time.monotonic()
        if now - self._told < TELL_SECONDS:
            return
        self._told = now
        heard = self._company.heard
        self._tell(
            "progress",
            {
                "seconds": round(time.time() - self._began, 1),
                "put": sum(heard.tried.values()),
                "acknowledged": sum(heard.acknowledged.values()),
                "rows": {query: sum(batches.values()) for query, batches in sorted(heard.rows.items())},
                "lag": heard.lag.get("bronze"),
                "alerts": len(heard.alerts),
            },
        )

    def _drain(self) -> None:
        """Wait until everything that is in the log is in the tables."""
        company = self._company
        assert company.driver is not None
        company.heard.is_drained = False
        company.driver.tell("drain")

        def again() -> None:
            drivers = company.drivers
            self._watch()
            if company.drivers != drivers and company.driver is not None:  # another one, which was not told yet
                company.driver.tell("drain")

        company.wait(lambda: company.heard.is_drained, "everything is in the tables", again)

    def _account(self, session: elea.Session, phone: Phone, lamp: Lamp) -> Outcome:
        """Compare everything with everything; what is still on its way is waited for."""
        heard = self._company.heard
        end = time.monotonic() + SETTLE_SECONDS
        while True:
            self._drain()
            received = [origin for origin, _ in heard.alerts]
            killed = any(what == "broker" for _, what in self._kills)
            evidence = gather(self.place, session, received, lamp, is_broker_killed=killed)
            verdict = judge(evidence)
            if verdict.is_good or time.monotonic() > end:
                break
            time.sleep(1.0)
        samples = [(put - self._began, late) for put, late in to_table(self.place)]
        puts = [(Origin.parse(origin).at / 1e6, came) for origin, came in heard.alerts]
        alerts = [(put - self._began, came - put) for put, came in puts]
        live = self._marks.get("first alert", 0.0)
        return Outcome(
            verdict=verdict,
            to_table=latency_of(late for put, late in samples if put >= live),
            to_alert=latency_of(late for put, late in alerts if put >= live),
            waited=latency_of(late for put, late in samples if put < live),
            samples=tuple(samples),
            alerts=tuple(alerts),
            batches=tuple({**one, "time": one["time"] - self._began} for one in heard.batches),
            windows=tuple(sorted(evidence.gold)),
            marks=dict(self._marks),
            calls=latency_of(phone.seconds),
            failed_calls=dict(phone.failed),
            drive=tuple(self._driven(evidence.drive.table)),
            kills=tuple(self._kills),
            drivers=self._company.drivers,
            publishers=tuple(self._company.publishers),
            began=self._began,
            seconds=time.time() - self._began,
        )

    def _driven(self, table: Sequence[Message]) -> Iterator[tuple[float, float, float]]:
        for one in sorted(table, key=lambda one: one.id):  # identifiers begin with the time
            if one.type == "PUBLISH" and one.origin is not None:
                yield Origin.parse(one.origin).at / 1e6 - self._began, one.speed or 0.0, one.allowed or 0.0

    def _stay(self) -> None:
        """Publish on, until somebody has seen enough."""
        self._tell("staying", {"locator": self._company.locator, "place": str(self.place)})
        self._company.ask_publishers("go")
        with contextlib.suppress(KeyboardInterrupt):
            while True:
                self._watch()
                time.sleep(POLL_SECONDS)

    def _mark(self, what: str) -> None:
        with self._lock:
            if what in self._marks:
                return
            self._marks[what] = time.time() - self._began
        self._tell("mark", {"what": what, "seconds": round(self._marks[what], 1)})
