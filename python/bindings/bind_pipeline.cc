#include "python/bindings/bind.h"

namespace zeus::python {

void BindPipeline(py::module_& core) { core.def_submodule("pipeline"); }

}  // namespace zeus::python
