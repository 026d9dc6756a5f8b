"""Rooms keep to themselves: no private member of another room, no attributes looked up by dict."""

import ast
from pathlib import Path

import bnpstream

ROOT = Path(bnpstream.__file__).parent
NAMED_TUPLES = {"_asdict", "_fields", "_field_defaults", "_make", "_replace"}
"""Public, whatever their names."""
OF_LIBRARIES = {
    "kernels/jit/cache.py": {"_cache", "_impl", "_cache_path", "_cache_file", "_version"},
    "estimators/stream_estimator.py": {"_repr_html_inner", "_repr_mimebundle_"},
}
"""Hooks of numba and scikit-learn that have no public name."""


def modules():
    """Yield every module's place, its room and its tree."""
    for path in sorted(ROOT.rglob("*.py")):
        place = path.relative_to(ROOT).as_posix()
        yield place, place.partition("/")[0], ast.parse(path.read_text())


def defined(tree):
    """Return the private names that a module defines: functions, fields, attributes."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
        elif isinstance(node, ast.AnnAssign | ast.Assign):
            targets = [node.target] if isinstance(node, ast.AnnAssign) else node.targets
            for target in targets:
                found |= {name.id for name in ast.walk(target) if isinstance(name, ast.Name)}
    return found


def is_own(node):
    """Return whether an attribute is looked up on the object itself."""
    value = node.value
    if isinstance(value, ast.Call):  # super()
        value = value.func
    return isinstance(value, ast.Name) and value.id in ("self", "cls", "super")


def private(node):
    name = node.attr
    return name.startswith("_") and not name.startswith("__") and name not in NAMED_TUPLES


def offences(tree, known):
    """Return what a module looks up that is private to others, and state looked up by dict."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            foreign = private(node) and not is_own(node) and node.attr not in known
            if foreign or node.attr == "__dict__":
                found.append(f"line {node.lineno}: {node.attr}")
        match node:
            case ast.Call(func=ast.Name(id="vars"), args=[_]):
                found.append(f"line {node.lineno}: vars")
            case ast.FunctionDef(name="__getattr__", args=ast.arguments(args=[ast.arg("self"), _])):
                found.append(f"line {node.lineno}: __getattr__")
    return found


def test_no_room_touches_a_private_member_of_another():
    names = {}
    for _, room, tree in modules():
        names[room] = names.get(room, set()) | defined(tree)
    found = {
        place: offences(tree, names[room] | OF_LIBRARIES.get(place, set()))
        for place, room, tree in modules()
    }
    assert {place: lines for place, lines in found.items() if lines} == {}


def test_offences_are_seen():
    code = "def f(x):\n    x._hidden = 1\n    return x._state, vars(x), x.__dict__"
    assert [line.split(": ")[1] for line in offences(ast.parse(code), {"_hidden"})] == [
        "_state",
        "vars",
        "__dict__",
    ]


def test_estimators_are_a_few_classes():
    from bnpstream import DocumentMixture, GibbsMixture, StreamingMixture

    for estimator in (DocumentMixture, GibbsMixture, StreamingMixture):
        ours = [cls for cls in estimator.__mro__ if cls.__module__.startswith("bnpstream.")]
        assert len(ours) <= 4, ours
