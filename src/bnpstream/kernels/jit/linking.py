"""Functions that only compiled loops call: turned into LLVM's code, and no further.

numba optimizes every function and turns it into machine code, together with all that it calls, as
if Python would call it. A function that a loop calls is thus optimized once more in every loop that
it is linked into, and its own machine code never runs. That was half of what compilation took. Here
such a function stays as it was lowered; the loop that Python calls is optimized once, as a whole.

Such functions hold no Python objects: numba would have to hand these to the machine code.
"""

from typing import Any

from numba import _dynfunc
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering


class LinkedLibrary(JITCodeLibrary):
    """The code of one function, without that of what it calls."""

    def finalize(self) -> None:
        """Take nothing more; leave optimization to those who link it."""
        self._finalized = True

    def with_callees(self) -> list[Any]:
        """Return this and all libraries that it needs, each once."""
        found: dict[Any, None] = {self: None}
        for library in self._linking_libraries:
            linked = isinstance(library, LinkedLibrary)
            found.update(dict.fromkeys(library.with_callees() if linked else [library]))
        return list(found)


@register_pass(mutates_CFG=True, analysis_only=False)
class LinkedLowering(NativeLowering):
    """numba's lowering, without optimization and machine code."""

    _name = "bnpstream_linked_lowering"

    def run_pass(self, state: Any) -> bool:
        """Lower a function and make it known to its callers."""
        state.library = LinkedLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        super().run_pass(state)
        state.library.finalize()
        lowered = state["cr"]
        name, module = lowered.fndesc.qualname.split(".")[-1], lowered.fndesc.lookup_module()
        key = _dynfunc.make_function(module, name, "linked", 0, lowered.env, (state.library,))
        state.targetctx.insert_user_function(key, lowered.fndesc, state.library.with_callees())
        state["cr"] = lowered._replace(cfunc=key)
        return True


class LinkedCompiler(CompilerBase):
    """numba's compiler, for functions that only compiled loops call (``pipeline_class``)."""

    def define_pipelines(self) -> list[Any]:
        """Return numba's passes, the lowering replaced."""
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state, "linked")
        passes._finalized = False
        passes.passes = [
            (LinkedLowering if step is NativeLowering else step, reason)
            for step, reason in passes.passes
        ]
        passes.finalize()
        return [passes]


LINKED: dict[str, Any] = {
    "error_model": "numpy",
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    "pipeline_class": LinkedCompiler,
}
"""Options of such functions; divisions are not checked."""
