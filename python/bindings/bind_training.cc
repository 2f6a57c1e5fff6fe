#include "python/bindings/bind.h"

namespace zeus::python {

void BindTraining(py::module_& core) { core.def_submodule("training"); }

}  // namespace zeus::python
