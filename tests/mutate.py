"""Do the tests notice when the code is wrong? Changes it in one place after the other, at random, and runs them.

    python -m tests.mutate [--layers store,space,protocol,node] [--count 20] [--seed 1] [--timeout 240]

Mutations are those of cosmic-ray (an operator replaced, a condition turned round, a number off by one, a decorator
gone),
drawn by seed from the modules of each layer, by their length. Each is tried in a copy of the sources with the tests of
its layer; who fails, or takes too long, has noticed. Prints what nobody noticed, and the share that was.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
TESTS = {
    "store": ["tests/unit/store", "tests/property/test_alignment_laws.py", "tests/property/test_source_runs.py"],
    "space": ["tests/unit/space", "tests/property/test_space.py", "tests/unit/testing"],
    "protocol": ["tests/unit/protocol", "tests/property/test_zenoh1_protocol.py", "tests/property/test_fragments.py"],
    "node": ["tests/unit/node", "tests/unit/testing", "tests/unit/api/test_nodefactory.py"],
}
TARGET = 0.85
"""The share that is to be noticed."""


class Mutation(NamedTuple):
    """One change."""

    layer: str
    file: Path
    operator: str
    code: str


def drawn(layers: list[str], chance: random.Random) -> Iterator[Mutation]:
    """Mutations at random, without end."""
    files = {layer: sorted((ROOT / "src" / "elea" / layer).rglob("*.py")) for layer in layers}
    while True:
        layer = chance.choice(layers)
        file = chance.choices(files[layer], [path.stat().st_size for path in files[layer]])[0]
        found = _mutation(layer, file, chance)
        if found is not None:
            yield found


def _mutation(layer: str, file: Path, chance: random.Random) -> Mutation | None:
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator, operator_names

    code = file.read_text(encoding="utf-8")
    names = [name for name in operator_names() if name.startswith("core/")]
    for _ in range(40):
        name = chance.choice(names)
        operator: Any = get_operator(name)
        try:
            made = operator()
        except TypeError:  # it wants to be told something
            continue
        changed = mutate_code(code, made, chance.randrange(12))
        if changed is not None and _meaning(changed) != _meaning(code):
            return Mutation(layer, file, name.removeprefix("core/"), changed)
    return None


def _meaning(code: str) -> str:
    """What a program does: without annotations and docstrings, which mutations change too."""
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return code
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
            for argument in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]:
                argument.annotation = None
        elif isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(None)
    return ast.dump(tree)


def is_noticed(mutation: Mutation, sources: Path, timeout: float) -> bool:
    """Whether a test fails with it."""
    file = sources / mutation.file.relative_to(ROOT / "src")
    before = file.read_text(encoding="utf-8")
    file.write_text(mutation.code, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(sources), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", "not slow"]
    try:
        done = subprocess.run(
            [*command, *TESTS[mutation.layer]], cwd=ROOT, env=environment, capture_output=True, timeout=timeout
        )
    except subprocess.TimeoutExpired:
        return True
    finally:
        file.write_text(before, encoding="utf-8")
    return done.returncode != 0


def difference(mutation: Mutation) -> str:
    """What was changed."""
    before = mutation.file.read_text(encoding="utf-8").splitlines()
    lines = difflib.unified_diff(before, mutation.code.splitlines(), lineterm="", n=0)
    return "\n".join(f"    {line}" for line in lines if not line.startswith(("---", "+++")))


def main() -> int:
    """Runs the mutations and prints what came of them."""
    parser = argparse.ArgumentParser(description="Do the tests notice when the code is wrong?")
    parser.add_argument("--layers", default=",".join(TESTS))
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=240.0)
    args = parser.parse_args()
    layers = args.layers.split(",")
    noticed, tried, begun = 0, 0, time.monotonic()
    with tempfile.TemporaryDirectory() as place:
        sources = Path(place) / "src"
        shutil.copytree(ROOT / "src", sources, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
        for mutation, _ in zip(drawn(layers, random.Random(args.seed)), range(args.count), strict=False):
            tried += 1
            found = is_noticed(mutation, sources, args.timeout)
            noticed += found
            what = f"{mutation.file.relative_to(ROOT)}: {mutation.operator}"
            print(f"{'noticed ' if found else 'SURVIVED'}  {what}", flush=True)
            if not found:
                print(difference(mutation), flush=True)
    share = noticed / max(tried, 1)
    spent = time.monotonic() - begun
    print(f"seed {args.seed}: {noticed} of {tried} noticed, {share:.0%} (target {TARGET:.0%}), {spent:.0f} s")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
