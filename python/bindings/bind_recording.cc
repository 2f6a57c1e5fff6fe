#include "python/bindings/bind.h"

namespace zeus::python {

void BindRecording(py::module_& core) { core.def_submodule("recording"); }

}  // namespace zeus::python
