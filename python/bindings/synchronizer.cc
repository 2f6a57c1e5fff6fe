#include "python/bindings/synchronizer.h"

#include <fmt/format.h>
#include <pybind11/stl.h>

#include <array>
#include <cstddef>
#include <utility>

#include "python/bindings/errors.h"

namespace zeus::python {
namespace {

constexpr std::array<const char*, 3> kFrameworks = {"torch", "jax", "cupy"};

}  // namespace

Synchronizer::Synchronizer(const std::string& framework, std::vector<int> gpus)
    : modules_(py::module_::import("sys").attr("modules")), gpus_(std::move(gpus)) {
  for (const char* name : kFrameworks)
    if (framework.empty() || framework == name)
      names_.push_back(py::reinterpret_steal<py::str>(PyUnicode_InternFromString(name)));
  if (names_.empty())
    throw Failure(
        {ErrorCode::kInvalidArgument,
         fmt::format("sync_execution_with is \"{}\": one of \"torch\", \"jax\", \"cupy\", "
                     "or None for the one that the program uses",
                     framework)});
}

void Synchronizer::LookForFramework() {
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (PyDict_GetItemWithError(modules_.ptr(), names_[i].ptr()) == nullptr) continue;
    const py::object answer =
        py::module_::import("zeus.utils.framework").attr("synchronizer")(names_[i], gpus_);
    if (answer.is(py::handle(Py_NotImplemented)))
      continue;  // The framework is still being imported.
    if (answer.is_none()) {
      names_.erase(names_.begin() +
                   static_cast<std::ptrdiff_t>(i--));  // The framework has no GPU to wait for.
      continue;
    }
    function_ = answer;
    Call();
    return;
  }
}

}  // namespace zeus::python
