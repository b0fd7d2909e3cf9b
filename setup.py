"""Compile the way of a sample to machine code where a C compiler is at hand; install it as it is where it is not.

That is the codecs, and the modules between them and a user's call; nothing else is worth it.

`ELEA_COMPILE=0` skips the compilation (editable installs do, so that an edit takes effect at once), `ELEA_COMPILE=1`
makes a failure an error. pip asks several times what a build needs and what it is called: mypyc runs only when it is
built. A wheel without machine code is tagged as one for every machine.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

ELEA = Path("src/elea")
CODECS = [
    "wire/primitives.py",
    "wire/markers.py",
    "wire/details.py",
    "wire/xrce2017/codec.py",
    "wire/zenoh2018/codec.py",
    "wire/zenoh1/codec.py",
    "wire/zenoh1/samples.py",
    "wire/zenoh1/queries.py",
]
WAY_OF_A_SAMPLE = [
    "api/callbacks.py",
    "api/channels.py",
    "api/sampledelivery.py",
    "api/putroute.py",
    "api/sample.py",
    "api/stored.py",
    "api/zbytes.py",
    "node/connection.py",
    "node/dialect.py",
    "node/node.py",
    "node/outboxface.py",
    "node/outflow.py",
    "node/route.py",
    "node/stamper.py",
    "node/early/arrivals.py",
    "node/early/encoder.py",
    "node/zenoh1/encoder.py",
    "node/zenoh1/face.py",
    "node/zenoh1/fanout.py",
    "node/zenoh1/machine.py",
    "node/zenoh1/namedroutes.py",
    "node/zenoh1/pushes.py",
    "io/dispatch.py",
    "io/backpressure.py",
    "io/interrupts.py",
    "io/link.py",
    "io/lane.py",
    "io/leadership.py",
    "io/loop.py",
    "io/sharedmemory.py",
    "io/poller.py",
    "io/batchreader.py",
    "io/outbox.py",
    "io/spin.py",
    "io/timers.py",
    "io/waiters.py",
    "model/chunkrow.py",
    "model/details.py",
    "model/keyexpr.py",
    "protocol/early/acknack.py",
    "protocol/early/conduit.py",
    "protocol/early/numbered.py",
    "protocol/early/receiving.py",
    "protocol/early/sending.py",
    "protocol/early/serial.py",
    "protocol/zenoh1/reassembly.py",
    "protocol/zenoh1/sender.py",
    "protocol/zenoh1/transport.py",
    "space/way.py",
]
WAY_OF_A_QUERY = [
    "api/answerer.py",
    "api/query.py",
    "api/outgoingquery.py",
    "api/reply.py",
    "node/zenoh1/controlcodec.py",
    "node/zenoh1/sessionqueries.py",
    "node/localface.py",
    "node/querytimeouts.py",
    "space/deadlines.py",
    "space/neighbour.py",
    "space/queries.py",
    "space/questions.py",
    "space/routes.py",
    "space/space.py",
]
WAY_OF_A_MESSAGE = [
    "uprotocol/attachment.py",
    "uprotocol/received.py",
    "uprotocol/uuid7.py",
]
"""Of uProtocol: a sixth less for a message that comes."""

WANTED = os.environ.get("ELEA_COMPILE", "auto")
BUILDING = {"bdist_wheel", "build", "build_ext", "develop", "editable_wheel", "install"}
"""Commands that need the modules; the others ask for names and requirements only."""


def extensions() -> list[Extension]:
    """Modules as C extensions, or none if that is not wanted or cannot be."""
    if WANTED == "0" or not BUILDING & set(sys.argv[1:]):
        return []
    sources = [*CODECS, *WAY_OF_A_SAMPLE, *WAY_OF_A_QUERY, *WAY_OF_A_MESSAGE]
    say(f"{len(sources)} modules are made machine code, which takes some minutes; ELEA_COMPILE=0 leaves them plain")
    try:
        from mypyc.build import mypycify

        modules: list[Extension] = mypycify(
            [*(str(ELEA / each) for each in sources), "--ignore-missing-imports"],
            opt_level="3",
            strip_asserts=False,
        )
    except BaseException as error:  # mypyc ends the process on what it cannot compile
        if WANTED == "1" or isinstance(error, KeyboardInterrupt):
            raise
        say(f"everything stays plain Python: {error}")
        return []
    return modules


def say(text: str) -> None:
    """What is going on, for `pip install -v` and `python -m build`."""
    sys.stderr.write(f"elea: {text}\n")
    sys.stderr.flush()


class OptionalBuild(build_ext):
    """A build whose failure leaves the plain modules to do the work."""

    def run(self) -> None:
        try:
            super().run()
        except Exception as error:
            if WANTED == "1":
                raise
            say(f"everything stays plain Python: {error}")
            self.extensions.clear()
            self.distribution.ext_modules = []

    def get_outputs(self, *args: Any) -> list[str]:
        return [] if not self.extensions else super().get_outputs(*args)


class HonestWheel(bdist_wheel):
    """A wheel that is for one kind of machine only if there is machine code in it."""

    def run(self) -> None:
        self.run_command("build_ext")  # first: whether it succeeds decides what the wheel is
        self.root_is_pure = not self.distribution.ext_modules
        super().run()


setup(ext_modules=extensions(), cmdclass={"build_ext": OptionalBuild, "bdist_wheel": HonestWheel})
