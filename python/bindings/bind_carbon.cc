#include "python/bindings/bind.h"

namespace zeus::python {

void BindCarbon(py::module_& core) { core.def_submodule("carbon"); }

}  // namespace zeus::python
