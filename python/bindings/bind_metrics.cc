#include "python/bindings/bind.h"

namespace zeus::python {

void BindMetrics(py::module_& core) { core.def_submodule("metrics"); }

}  // namespace zeus::python
