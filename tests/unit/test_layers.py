"""The layer rule: dependencies point down only, and pure layers import nothing impure."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import elea

ROOT = Path(elea.__path__[0])

ALLOWED = {
    "model": set(),
    "notation": {"model"},
    "wire": {"model", "notation"},
    "protocol": {"model", "notation", "wire"},
    "space": {"model", "notation", "wire", "protocol"},
    "content": {"model", "wire", "store"},
    "store": {"model", "wire"},
    "columnar": {"model", "wire", "content"},
    "io": {"model", "notation", "wire", "protocol", "space"},
    "node": {"model", "notation", "wire", "protocol", "space", "content", "store", "columnar", "io"},
    "tiny": set(),
    "plot": set(),
    "api": {"model", "notation", "wire", "protocol", "space", "content", "store", "columnar", "io", "node"},
}
EVERYTHING_BELOW = set(ALLOWED) - {"tiny"}
"""`tiny` stands by itself: a device has nothing else."""
DOORS = {"aio", "uprotocol", "dds", "spark", "cli", "console", "testing", "demo", "conformance", "recorder"}

BELOW_IO = ("model", "notation", "wire", "protocol", "space", "content", "tiny", "plot")
BANNED = {"asyncio", "socket", "ssl", "time", "random", "os", "threading", "pyspark"}
COMMAND_LINE_DOORS = {"dds", "uprotocol", "spark", "demo", "conformance", "recorder"}
"""What the command line may reach besides the layers: it is the door through which people try the others."""

MESSAGE_FORMAT = {"spark/payload/attributecolumns.py", "spark/payload/uprotocol_format.py"}
"""The format of payloads that reads uProtocol messages, and so knows what they are."""

DIALECT_ROOMS = ("wire", "protocol", "columnar", "node/zenoh1")
CAPTURE_TOOLS = {
    "cli/conversation.py",
    "cli/tour.py",
    "spark/capture_messages.py",
    "spark/capture_talk.py",
    "testing/networktrace.py",
}
"""What shows or reads messages as they were on the wire."""


def modules() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


def layer_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imports(path: Path) -> set[str]:
    """Every module a file imports, wherever in the file."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            found.add(node.module or "")
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def layers_imported(path: Path) -> set[str]:
    known = EVERYTHING_BELOW | DOORS
    return {parts[1] for name in imports(path) if (parts := name.split("."))[0] == "elea" and len(parts) > 1} & known


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_dependencies_point_down(path: Path) -> None:
    layer = layer_of(path)
    if layer in ("__init__", "__main__"):
        return
    allowed = ALLOWED.get(layer, EVERYTHING_BELOW) | {layer}
    if layer == "cli":
        allowed = allowed | COMMAND_LINE_DOORS
    if layer == "uprotocol":  # its asyncio part stands on that of the API
        allowed = allowed | {"aio"}
    if path.relative_to(ROOT).as_posix() in MESSAGE_FORMAT:
        allowed = allowed | {"uprotocol"}
    if layer == "demo":  # it shows all the doors, and none of them knows it
        allowed = allowed | DOORS - {"cli"}

    assert layers_imported(path) <= allowed


@pytest.mark.parametrize(
    "path",
    [path for path in modules() if layer_of(path) in BELOW_IO],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_pure_layers_import_nothing_impure(path: Path) -> None:
    roots = {name.split(".")[0] for name in imports(path)}

    assert roots & BANNED == set()


def test_every_package_is_a_known_layer() -> None:
    packages = {path.name for path in ROOT.iterdir() if path.is_dir() and path.name != "__pycache__"}

    assert packages <= set(ALLOWED) | DOORS


def test_a_codec_is_imported_without_the_notation() -> None:
    """A client pays for its codec only: not for the parser, the JSON form or the dissection."""
    codec = ROOT / "wire" / "zenoh1" / "codec.py"

    assert not any(name.startswith("elea.notation") for name in imports(codec))
    assert layers_imported(ROOT / "wire" / "__init__.py") <= {"wire"}


def test_only_its_own_rooms_know_the_dialect() -> None:
    """Everything above works with neutral values, so that another dialect needs no other API, store or space."""
    names = {path: path.relative_to(ROOT).as_posix() for path in modules()}
    above = {path: name for path, name in names.items() if not name.startswith(DIALECT_ROOMS)}
    knowing = {name for path, name in above.items() if any("zenoh1" in one.split(".") for one in imports(path))}

    assert knowing == CAPTURE_TOOLS


def test_a_device_needs_nothing_but_its_own_files() -> None:
    found = set().union(*(imports(path) for path in modules() if layer_of(path) == "tiny"))

    assert {name.rpartition(".")[0] for name in found if name.startswith("elea.tiny")} <= {
        "elea",
        "elea.tiny",
        *(f"elea.tiny.{one}" for one in ("channels", "client", "octets")),
    }
    assert {name for name in found if not name.startswith("elea.tiny")} == {
        "collections.abc",  # for the type checker alone
        "collections.abc.Callable",
    }
