"""The public surface against the type stubs of eclipse-zenoh, down to parameters and their defaults."""

from __future__ import annotations

import ast
import importlib
import inspect
from enum import Enum
from pathlib import Path

import pytest

import elea

zenoh = pytest.importorskip("zenoh")

STUBS = Path(zenoh.__file__).parent

LATER = {
    "Scout",
    # zenoh.ext
    "AdvancedPublisher",
    "AdvancedSubscriber",
    "CacheConfig",
    "HistoryConfig",
    "Miss",
    "MissDetectionConfig",
    "RecoveryConfig",
    "RepliesConfig",
    "SampleMissListener",
}
"""Classes still to be written; take a name out and it is compared."""

DIFFERENT = {
    "QueryConsolidation.mode": "the stubs declare a property, eclipse-zenoh has a method; so have we",
    "Selector.key_expr": "the stubs declare a setter, eclipse-zenoh has none; neither have we",
    "Selector.parameters": "the same",
    "Encoding.__new__": "its parameter is called 'text' in elea.model.encoding",
    "SetIntersectionLevel": "its str is the number, in elea.model.keyexpr",
}
"""What differs from the stubs, and why."""

OURS = {
    "Handler.recv": ["timeout"],
    "Publisher.delete": ["ack", "timeout"],
    "Publisher.put": ["ack", "timeout"],
    "Session.declare_publisher": ["durability"],
    "Session.declare_subscriber": ["mode", "history", "since", "cursor", "auto_commit", "on_loss", "where"],
    "Session.get": ["where"],
    "Session.delete": ["durability", "ack", "timeout"],
    "Session.put": ["durability", "ack", "timeout"],
}
"""Options that eclipse-zenoh has not; each can be given by its name only, and left out."""

MODULES = [
    "elea.api.cancellation",
    "elea.api.config",
    "elea.api.identity",
    "elea.api.info",
    "elea.api.instrumentation",
    "elea.api.query",
    "elea.api.reply",
    "elea.api.sample",
    "elea.api.apitimestamp",
    "elea.api.queryoptions",
    "elea.api.whatami",
    "elea.api.zbytes",
    "elea.model.encoding",
    "elea.model.keyexpr",
    "elea.model.qos",
    "elea.model.selector",
    "elea.handlers",
    "elea.ext",
]
"""Where names are found as long as `elea` does not export them."""


def classes(file: str) -> dict[str, ast.ClassDef]:
    tree = ast.parse((STUBS / file).read_text(encoding="utf-8"))
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}


STUBBED = {**classes("__init__.pyi"), **classes("handlers.pyi"), **classes("ext.pyi")}
COMPARED = sorted(set(STUBBED) - LATER)


def ours(name: str) -> object:
    if hasattr(elea, name):
        return getattr(elea, name)
    for module in MODULES:
        found = getattr(importlib.import_module(module), name, None)
        if found is not None:
            return found
    raise AssertionError(f"{name} is missing")


def methods(node: ast.ClassDef) -> list[ast.FunctionDef]:
    return [item for item in node.body if isinstance(item, ast.FunctionDef)]


def decorators(node: ast.FunctionDef) -> set[str]:
    return {ast.unparse(item) for item in node.decorator_list}


def parameters(node: ast.FunctionDef) -> dict[str, tuple[str, object]]:
    """Names to kinds and defaults, without `self`."""
    spec = node.args
    positional = [*spec.posonlyargs, *spec.args]
    defaults = [None] * (len(positional) - len(spec.defaults)) + list(spec.defaults)
    found = {}
    for index, (argument, default) in enumerate(zip(positional, defaults, strict=True)):
        if index == 0 and argument.arg in ("self", "cls"):
            continue
        kind = "POSITIONAL_ONLY" if argument in spec.posonlyargs else "POSITIONAL_OR_KEYWORD"
        found[argument.arg] = (kind, value_of(default))
    for argument, default in zip(spec.kwonlyargs, spec.kw_defaults, strict=True):
        found[argument.arg] = ("KEYWORD_ONLY", value_of(default))
    return found


def value_of(node: ast.expr | None) -> object:
    return inspect.Parameter.empty if node is None else ast.literal_eval(node)


def signature(target: object) -> dict[str, tuple[str, object]]:
    assert callable(target)
    return {
        name: (parameter.kind.name, parameter.default)
        for name, parameter in inspect.signature(target).parameters.items()
        if name != "self" and parameter.kind.name not in ("VAR_POSITIONAL", "VAR_KEYWORD")
    }


def difference(mine: dict[str, tuple[str, object]], real: dict[str, tuple[str, object]]) -> str:
    """What a program written for the stubs would stumble over; more options or defaults of our own are none of that."""
    for name, (kind, default) in real.items():
        found = mine.get(name)
        if found is None or found[0] != kind or default not in (found[1], inspect.Parameter.empty):
            return f"{name}: {(kind, default)} expected, {found} found"
    if list(mine)[: len(real)] != list(real):
        return f"order {list(mine)}, not {list(real)}"
    for name in list(mine)[len(real) :]:
        if mine[name][1] is inspect.Parameter.empty:
            return f"{name} is needed here only"
    return ""


@pytest.mark.parametrize("name", COMPARED)
def test_every_public_class_has_the_same_members(name: str) -> None:
    cls = ours(name)

    for method in methods(STUBBED[name]):
        assert hasattr(cls, method.name), f"{name}.{method.name} is missing"
        if f"{name}.{method.name}" in DIFFERENT:
            continue
        is_property = "property" in decorators(method)
        found = inspect.getattr_static(cls, method.name, None)
        if is_property:
            assert not callable(found) or isinstance(found, property), f"{name}.{method.name} is no property"
        elif not method.name.startswith("__"):
            assert callable(getattr(cls, method.name)), f"{name}.{method.name} is no method"


@pytest.mark.parametrize("name", COMPARED)
def test_every_public_method_has_the_same_parameters(name: str) -> None:
    cls = ours(name)

    for method in methods(STUBBED[name]):
        path = f"{name}.{method.name}"
        if path in DIFFERENT or "property" in decorators(method):
            continue
        if method.name == "__new__":
            assert not difference(signature(cls), parameters(method)), path
        elif not method.name.startswith("__"):
            bound = inspect.getattr_static(cls, method.name)
            target = bound.__func__ if isinstance(bound, classmethod) else bound
            mine = {k: v for k, v in signature(target).items() if k != "cls"}
            assert not difference(mine, parameters(method)), f"{path}: {difference(mine, parameters(method))}"
            extra = [option for option in mine if option not in parameters(method)]
            assert extra == OURS.get(path, []), path
            assert {mine[option][0] for option in extra} <= {"KEYWORD_ONLY"}, path


@pytest.mark.parametrize("name", [name for name in COMPARED if "Enum" in map(ast.unparse, STUBBED[name].bases)])
def test_every_enumeration_has_the_same_members(name: str) -> None:
    cls = ours(name)
    assert isinstance(cls, type)
    assert issubclass(cls, Enum)
    wanted = {
        target.id
        for item in STUBBED[name].body
        if isinstance(item, ast.Assign)
        for target in item.targets
        if isinstance(target, ast.Name)
    }

    assert wanted <= set(cls.__members__)
    for member in wanted:
        assert int(getattr(cls, member)) == int(getattr(getattr(zenoh, name), member))
        if name not in DIFFERENT:
            assert str(getattr(cls, member)) == str(getattr(getattr(zenoh, name), member))


@pytest.mark.parametrize("name", [name for name in COMPARED if not name.startswith(("Int", "UInt", "Float"))])
def test_no_attribute_of_the_real_class_is_missing(name: str) -> None:
    real = next(
        getattr(module, name)
        for module in (zenoh, zenoh.handlers, importlib.import_module("zenoh.ext"))
        if hasattr(module, name)
    )
    public = {attribute for attribute in dir(real) if not attribute.startswith("_")}
    missing = {attribute for attribute in public if not hasattr(ours(name), attribute)}

    assert missing == set()


def test_defaults_are_those_of_eclipse_zenoh() -> None:
    assert str(elea.Reliability.DEFAULT) == str(zenoh.Reliability.DEFAULT) == "Reliability.BEST_EFFORT"


def test_names_that_are_not_built_say_so() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"elea\.shm is not built"):
        importlib.import_module("elea.shm")
    with pytest.raises(AttributeError, match=r"elea\.shm is not built"):
        _ = elea.shm
    with pytest.raises(AttributeError, match=r"AdvancedPublisher is not built: have a broker keep"):
        _ = elea.ext.AdvancedPublisher
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = elea.ext.Nothing


@pytest.mark.parametrize("name", ["z_serialize", "z_deserialize"])
def test_every_function_has_the_same_parameters(name: str) -> None:
    tree = ast.parse((STUBS / "ext.pyi").read_text(encoding="utf-8"))
    stub = next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name)

    assert not difference(signature(ours(name)), parameters(stub))


@pytest.mark.parametrize("name", ["init_log_from_env_or", "open", "try_init_log_from_env"])
def test_every_function_of_the_package_has_the_same_parameters(name: str) -> None:
    tree = ast.parse((STUBS / "__init__.pyi").read_text(encoding="utf-8"))
    stub = next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name)

    assert not difference(signature(getattr(elea, name)), parameters(stub))


def test_later_names_only_what_the_stubs_have() -> None:
    assert LATER - set(STUBBED) == set()
