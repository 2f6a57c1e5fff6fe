#include "python/bindings/bind.h"

namespace zeus::python {

void BindBatchSize(py::module_& core) { core.def_submodule("batch_size"); }

}  // namespace zeus::python
