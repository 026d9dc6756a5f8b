"""How numba's compiler is used: what only compiled loops call stays as it was lowered.

numba optimizes every function and turns it into machine code, together with all that it calls, as
if Python were going to call it. A function that a loop calls is thus optimized again in every loop
that it is linked into, and its own machine code never runs: half of the time that compilation took.
Here such a function is lowered and no more. The loop that Python calls is optimized once, as a
whole.

numba compiles an overload once per set of the caller's flags. So all functions have the same flags
while types are inferred; what they differ in is set when they are lowered.

Functions that only compiled loops call must hold no Python objects: nothing hands these over.

All this uses numba's insides, which may change. With another version than the one that it was
tested with, loops are compiled by numba's own pipeline: to the same results, in twice the time.
"""

from typing import Any, ClassVar

import numba
from numba import _dynfunc, types  # type: ignore[attr-defined]
from numba.core import ir
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.typed_passes import NativeLowering

HERE = __name__.partition(".")[0]
TESTED = "0.68."
"""How versions of numba begin that this was tested with."""


class LinkedLibrary(JITCodeLibrary):
    """The code of one function, without that of what it calls."""

    def finalize(self) -> None:
        """Take nothing more, and leave optimization to those who link this."""
        self._finalized = True

    def with_callees(self) -> list[Any]:
        """Return this and all libraries that it needs, each once."""
        found: dict[Any, None] = {self: None}
        for library in self._linking_libraries:
            linked = isinstance(library, LinkedLibrary)
            found.update(dict.fromkeys(library.with_callees() if linked else [library]))
        return list(found)


def owns_arrays(state: Any) -> bool:
    """Return whether a function makes arrays, is handed new ones by others, or returns any.

    If not, all its arrays are its caller's, or views of these, which outlive the call: references
    need not be counted, and a third of its code is not there. Other packages' functions may do what
    was not thought of here, so theirs are always counted.
    """
    models = state.targetctx.data_model_manager

    def holds_arrays(kind: Any) -> bool:
        return bool(models[kind].contains_nrt_meminfo())

    def makes_arrays(step: Any, signature: Any) -> bool:
        if signature is None:
            return False
        sets = isinstance(step, ir.SetItem | ir.StaticSetItem)
        if sets or getattr(step, "op", "") in ("getitem", "static_getitem"):
            return any(map(holds_arrays, signature.args[1:]))  # else it is a view, or a number
        return holds_arrays(signature.return_type)

    return (
        state.func_id.modname.partition(".")[0] != HERE
        or holds_arrays(state.return_type)
        or any(makes_arrays(*item) for item in state.calltypes.items())
        or any(
            holds_arrays(kind) and not isinstance(kind, types.Array | types.BaseTuple)
            for kind in state.typemap.values()
        )
    )


@register_pass(mutates_CFG=True, analysis_only=False)
class LinkedLowering(NativeLowering):
    """numba's lowering, without optimization and machine code."""

    _name = "bnpstream_linked_lowering"
    inlines = False

    def run_pass(self, state: Any) -> bool:
        """Lower a function and make it known to its callers."""
        state.library = LinkedLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile, state.flags.forceinline = True, self.inlines
        context = state.targetctx
        if not owns_arrays(state):
            state.targetctx = context.subtarget(enable_nrt=False)
        super().run_pass(state)
        state.targetctx = context
        state.library.finalize()
        lowered = state["cr"]
        name, module = lowered.fndesc.qualname.split(".")[-1], lowered.fndesc.lookup_module()
        key = _dynfunc.make_function(module, name, "linked", 0, lowered.env, (state.library,))
        state.targetctx.insert_user_function(key, lowered.fndesc, state.library.with_callees())
        state["cr"] = lowered._replace(cfunc=key)
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class InlinedLowering(LinkedLowering):
    """The same for a function that has to be inlined."""

    _name = "bnpstream_inlined_lowering"
    inlines = True


@register_pass(mutates_CFG=True, analysis_only=False)
class EntryLowering(NativeLowering):
    """numba's lowering of a loop that Python calls, without the interpreter's lock."""

    _name = "bnpstream_entry_lowering"

    def run_pass(self, state: Any) -> bool:
        """Lower a loop and optimize it, with all that it calls."""
        state.flags.no_cpython_wrapper, state.flags.release_gil = False, True
        return bool(super().run_pass(state))


class LinkedCompiler(CompilerBase):
    """numba's compiler, for functions that only compiled loops call (``pipeline_class``)."""

    lowering: type = LinkedLowering
    plain: ClassVar[dict[str, Any]] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    """Options that come to the same with numba's own pipeline."""

    def define_pipelines(self) -> list[Any]:
        """Return numba's passes with another lowering."""
        passes = PassManager("bnpstream")
        for step, reason in DefaultPassBuilder.define_nopython_pipeline(self.state).passes:
            passes.add_pass(self.lowering if step is NativeLowering else step, reason)
        passes.finalize()
        return [passes]


class InlinedCompiler(LinkedCompiler):
    """The same for functions that have to be inlined."""

    lowering = InlinedLowering
    plain: ClassVar[dict[str, Any]] = {**LinkedCompiler.plain, "forceinline": True}


class EntryCompiler(LinkedCompiler):
    """The same for loops that Python calls."""

    lowering = EntryLowering
    plain: ClassVar[dict[str, Any]] = {"nogil": True}


def options_for(compiler: type[LinkedCompiler]) -> dict[str, Any]:
    """Return numba's options for functions of one of these compilers; divisions are not checked."""
    if not numba.__version__.startswith(TESTED):
        return {"error_model": "numpy", **compiler.plain}
    return {
        "error_model": "numpy",
        "no_cpython_wrapper": True,
        "no_cfunc_wrapper": True,
        "pipeline_class": compiler,
    }
