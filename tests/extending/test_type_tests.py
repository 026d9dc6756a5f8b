"""No room outside `likelihoods` asks for the type of a likelihood or of its rows."""

import ast
import importlib
import pkgutil
from pathlib import Path

import pytest

import bnpstream
from bnpstream import likelihoods
from bnpstream.likelihoods import Batch, Likelihood

ROOT = Path(bnpstream.__file__).parent


def class_names():
    """Return the names of all families and of the batches that they make of rows."""
    names = {"Cells", "SparseRows"}
    for info in pkgutil.iter_modules(likelihoods.__path__, f"{likelihoods.__name__}."):
        for name, value in vars(importlib.import_module(info.name)).items():
            if isinstance(value, type) and issubclass(value, Likelihood | Batch):
                names.add(name)
    return names - {"Likelihood", "Batch"}


def type_tests(source, names):
    """Return the lines of a module that test for one of some classes, or for a vocabulary."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.MatchClass):
            tested = [node.cls]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id == "hasattr" and "vocabulary_" in ast.unparse(node.args[1]):
                found.append(node.lineno)
            tested = node.args[1:] if node.func.id in ("isinstance", "issubclass") else []
        else:
            continue
        inside = [part for each in tested for part in ast.walk(each)]
        used = {part.id for part in inside if isinstance(part, ast.Name)}
        used |= {part.attr for part in inside if isinstance(part, ast.Attribute)}
        if used & names:
            found.append(node.lineno)
    return found


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("isinstance(x, Product)", [1]),
        ("y = 1\nisinstance(x, likelihoods.Product | int)", [2]),
        ("issubclass(x, (int, CellBatch))", [1]),
        ("match x:\n    case Product():\n        pass", [2]),
        ('hasattr(model, "vocabulary_")', [1]),
        ("isinstance(x, Likelihood)\nProduct([])\nhasattr(x, 'shape')", []),
    ],
)
def test_type_tests_are_found(source, lines):
    assert type_tests(source, class_names()) == lines


def test_nobody_asks_for_the_type_of_a_likelihood():
    names = class_names()
    assert {"Automatic", "CellBatch", "DirichletMultinomial", "WordLikelihood"} <= names
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        place = path.relative_to(ROOT).as_posix()
        if place.split("/")[0] != "likelihoods":
            found[place] = type_tests(path.read_text(), names)
    assert {place: lines for place, lines in found.items() if lines} == {}
