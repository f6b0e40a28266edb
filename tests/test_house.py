"""The floors of the house: imports point down only, and nothing above the methods and tasks knows one of them by name.

Imports within functions, those for type checkers, and modules that are named in strings count as well.
"""

import ast
import re
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from jedax.imports import subclasses_in
from jedax.methods.base import Method

SRC = Path(__file__).parents[1] / "src"
FLOORS = (
    ("types", "errors", "arrays", "imports", "settings", "yaml_text", "networks", "space", "_version"),
    ("native",),
    ("repertoire", "es", "gp", "rl", "targets", "rankers", "variation", "sampling"),
    ("tasks", "methods"),
    ("store",),
    ("search",),
    ("bench",),
    ("report",),
    ("api", "optuna"),
    ("cli",),
    ("", "__main__"),
)
FLOOR_OF = {part: floor for floor, parts in enumerate(FLOORS) for part in parts}
# Parts of one floor that do not know each other.
STRANGERS = (*FLOORS[2:4],)


@cache
def modules():
    """Return the syntax tree of every module by its name."""
    files = {file: file.relative_to(SRC).with_suffix("").parts for file in sorted((SRC / "jedax").rglob("*.py"))}
    return {".".join(p).removesuffix(".__init__"): ast.parse(f.read_text(encoding="utf-8")) for f, p in files.items()}


def imported(name, tree):
    """Yield the modules of the package that a module imports, with the line."""
    for node in ast.walk(tree):
        found = []
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}:{node.lineno} imports relatively"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.append(inner if inner in modules() else node.module)
        elif isinstance(node, ast.Constant) and re.fullmatch(r"jedax(\.\w+){2,}(:[\w.]+)?", str(node.value)):
            found = [str(node.value).partition(":")[0]]
        for module in found:
            if module in modules() and module != name:
                yield module, node.lineno


@cache
def imports():
    """Return who imports what: importer, imported, line."""
    return [(name, module, line) for name, tree in modules().items() for module, line in imported(name, tree)]


def part_of(module):
    """Return the folder or module right below the package."""
    return module.partition(".")[2].partition(".")[0]


class TestFloors:
    def test_every_part_has_a_floor(self):
        assert sorted(FLOOR_OF) == sorted({part_of(module) for module in modules()})

    def test_imports_point_down(self):
        climbs = [
            f"{importer}:{line} imports {module}"
            for importer, module, line in imports()
            if FLOOR_OF[part_of(importer)] < FLOOR_OF[part_of(module)]
        ]
        assert climbs == []

    def test_blocks_do_not_know_each_other(self):
        known = [
            f"{importer}:{line} imports {module}"
            for importer, module, line in imports()
            for strangers in STRANGERS
            if part_of(importer) != part_of(module) and {part_of(importer), part_of(module)} <= {*strangers}
        ]
        assert known == []

    def test_no_circles(self):
        below = {module: set() for module in modules()}
        for importer, module, _ in imports():
            below[importer].add(module)
        try:
            TopologicalSorter(below).prepare()
        except CycleError as error:
            raise AssertionError(" -> ".join(reversed(error.args[1]))) from None


def above(floor):
    """Return the modules above a floor, without the package itself, whose names are for users."""
    return {module: tree for module, tree in modules().items() if floor < FLOOR_OF[part_of(module)] < len(FLOORS) - 1}


def named(tree):
    """Yield the names that a module uses or imports, with their nodes; those from other packages do not count."""
    others = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and not (node.module or "").startswith("jedax"):
            others |= {alias.name for alias in node.names}
    for node in ast.walk(tree):
        name = getattr(node, "id", None) or getattr(node, "attr", None) or getattr(node, "name", None)
        if name not in others:
            yield name, node


class TestMethods:
    """Whoever runs, stores, compares or describes methods knows none of them."""

    OPEN = ("jedax.methods", "jedax.methods.base", "jedax.methods.registry")

    def test_no_module_of_a_method_is_imported(self):
        found = [
            f"{importer}:{line} imports {module}"
            for importer, module, line in imports()
            if importer in above(FLOOR_OF["methods"]) and part_of(module) == "methods" and module not in self.OPEN
        ]
        assert found == []

    def test_no_class_of_a_method_is_named(self):
        kinds = subclasses_in("jedax.methods", Method).values()
        names = {kind.__name__ for kind in kinds} | {kind.Config.__name__ for kind in kinds}
        assert {"JEDi", "JediConfig", "CMAME", "MapElites"} <= names
        found = [
            f"{module}:{node.lineno} names {name}"
            for module, tree in above(FLOOR_OF["methods"]).items()
            for name, node in named(tree)
            if name in names
        ]
        assert found == []


class TestTasks:
    """Whoever runs, stores, compares, draws or describes tasks knows none of them."""

    FAMILIES = tuple(f"jedax.tasks.{path.parent.name}" for path in sorted((SRC / "jedax/tasks").glob("*/__init__.py")))

    def test_families_do_not_know_each_other(self):
        found = [
            f"{importer}:{line} imports {module}"
            for importer, module, line in imports()
            for family in self.FAMILIES
            if importer.startswith(family) and module.startswith(self.FAMILIES) and not module.startswith(family)
        ]
        assert found == []

    def test_no_module_of_a_family_is_imported(self):
        assert "jedax.tasks.maze" in self.FAMILIES
        found = [
            f"{importer}:{line} imports {module}"
            for importer, module, line in imports()
            if importer in above(FLOOR_OF["tasks"]) and module.startswith(self.FAMILIES)
        ]
        assert found == []

    def test_no_class_of_a_task_is_named(self):
        classes = {
            node.name: {ast.unparse(base).rpartition(".")[2] for base in node.bases}
            for module, tree in modules().items()
            for node in tree.body
            if isinstance(node, ast.ClassDef) and module.startswith(self.FAMILIES)
        }
        names = {name for name, bases in classes.items() if any(base.endswith("Task") for base in bases)}
        names |= {name for name, bases in classes.items() if bases & names}
        assert {"Maze", "AntMaze", "Locomotion", "Sphere", "PlanarArm", "Gym", "Playground"} <= names
        found = [
            f"{module}:{node.lineno} names {name}"
            for module, tree in above(FLOOR_OF["tasks"]).items()
            for name, node in named(tree)
            if name in names
        ]
        assert found == []

    def test_only_drawings_import_matplotlib(self):
        importing = {
            name
            for name, tree in modules().items()
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom | ast.Import) and "matplotlib" in ast.unparse(node)
        }
        assert {name for name in importing if part_of(name) == "tasks" and not name.endswith("drawing")} == set()
