#include "python/bindings/bind.h"

namespace zeus::python {

void BindPowerLimit(py::module_& core) { core.def_submodule("power_limit"); }

}  // namespace zeus::python
