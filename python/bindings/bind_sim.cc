#include "python/bindings/bind.h"

namespace zeus::python {

void BindSim(py::module_& core) { core.def_submodule("sim"); }

}  // namespace zeus::python
