#include "python/bindings/bind.h"

namespace zeus::python {

void BindDevice(py::module_& core) { core.def_submodule("device"); }

}  // namespace zeus::python
