"""Functions of Python that a pipeline names as `module:function`: found, told apart, loaded.

The module stands beside the pipeline file, or is installed where the driver runs and on the executors. Functions of one
that stands beside it go to the executors by value. Its text, without comments, belongs to the definition of what it
computes.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import importlib.util
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from elea.model.errors import ConfigError
from elea.spark.pipeline.problem import Wrong, nearest

__all__ = ["Code"]

_TEXT: Final = "__elea_text__"
"""What a module was made of."""


@dataclass(frozen=True, slots=True)
class Code:
    """A function of a module."""

    module: str
    function: str

    @classmethod
    def parse(cls, text: str) -> Code:
        """Read `module:function`.

        Raises:
            Wrong: it is something else.
        """
        module, mark, function = text.strip().partition(":")
        if not mark or not function.isidentifier() or not all(one.isidentifier() for one in module.split(".")):
            raise Wrong(f"{text!r} names no function", 'write "module:function", such as "fleet_steps:clean"')
        return cls(module, function)

    def __str__(self) -> str:
        return f"{self.module}:{self.function}"

    def file(self, base: Path) -> Path | None:
        """Where the module is: beside the pipeline, or installed; None if it is neither, or no text."""
        beside = base.joinpath(*self.module.split(".")).with_suffix(".py")
        if beside.is_file():
            return beside
        try:
            found = importlib.util.find_spec(self.module)
        except (ImportError, ValueError):
            return None
        return None if found is None or not found.has_location else Path(str(found.origin))

    def check(self, base: Path) -> None:
        """Look for the function, without running anything.

        Raises:
            Wrong: there is none.
        """
        file = self.file(base)
        if file is None:
            fix = f"put {self.module.replace('.', '/')}.py beside the pipeline, or install it"
            raise Wrong(f"there is no module {self.module}", fix)
        if file.suffix != ".py":
            return
        try:
            tree = ast.parse(file.read_bytes())
        except SyntaxError as error:
            raise Wrong(f"{file.name}:{error.lineno}: {error.msg}", "make it Python") from error
        names = [one.name for one in tree.body if isinstance(one, (ast.FunctionDef, ast.ClassDef))]
        for one in tree.body:
            if isinstance(one, ast.Assign):
                names += [target.id for target in one.targets if isinstance(target, ast.Name)]
            elif isinstance(one, (ast.Import, ast.ImportFrom)):
                names += [alias.asname or alias.name for alias in one.names]
        if self.function not in names:
            raise Wrong(f"{file.name} has no function {self.function}", nearest(self.function, names, "it has"))

    def fingerprint(self, base: Path) -> str:
        """What the module says, without comments and spaces."""
        file = self.file(base)
        if file is None:
            return "unknown"
        text = file.read_bytes()
        with contextlib.suppress(SyntaxError):
            text = ast.dump(ast.parse(text)).encode()
        return hashlib.sha256(text).hexdigest()

    def load(self, base: Path) -> Callable[..., Any]:
        """The function, in this process. What it is made of goes to the executors with whatever uses it.

        Raises:
            ConfigError: it cannot be imported, or is no function.
        """
        file = self.file(base)
        try:
            if file is not None and file.is_relative_to(base):
                found = _imported(self.module, file, base)
            else:
                found = importlib.import_module(self.module)
            function = getattr(found, self.function)
        except Exception as error:
            hint = "import it yourself in this Python, and see"
            raise ConfigError(f"python {self}", f"{type(error).__name__}: {error}", hint) from error
        if not callable(function):
            raise ConfigError(f"python {self}", f"it is no function but {type(function).__name__}", "name a function")
        return function  # type: ignore[no-any-return]


def _imported(name: str, file: Path, base: Path) -> Any:
    """A module of this file, also if another one of the name was imported before, for another pipeline."""
    from pyspark import cloudpickle

    known = sys.modules.get(name)
    if known is not None and getattr(known, _TEXT, None) == (str(file), file.read_bytes()):
        return known
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(base))  # for what it imports from beside it
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # PySpark complains of the version of pandas
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    finally:
        sys.path.remove(str(base))
    setattr(module, _TEXT, (str(file), file.read_bytes()))
    # By value: executors do not have these files, and a module that makes UDFs can be imported in drivers only.
    for one in list(sys.modules.values()):
        place = getattr(one, "__file__", None)
        if place is not None and Path(place).parent == file.parent:
            cloudpickle.register_pickle_by_value(one)  # type: ignore[no-untyped-call]
    return module
