#include "python/bindings/collective.h"

#include <fmt/format.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "python/bindings/closeable.h"
#include "python/bindings/errors.h"

namespace zeus::python {

PythonCollective::PythonCollective(py::object object)
    : object_(std::move(object)),
      rank_(object_.attr("rank").cast<int>()),
      size_(object_.attr("size").cast<int>()) {}

PythonCollective::~PythonCollective() {
  const py::gil_scoped_acquire acquired;
  object_ = {};
}

template <class... More>
Status PythonCollective::Exchange(const char* method, std::span<double> values, More... more) {
  const py::gil_scoped_acquire acquired;
  try {
    const auto result =
        object_.attr(method)(std::vector<double>(values.begin(), values.end()), more...)
            .template cast<std::vector<double>>();
    if (result.size() != values.size())
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("{}() of the collective took {} numbers and returned {}", method,
                               values.size(), result.size())};
    std::ranges::copy(result, values.begin());
    return Ok();
  } catch (const std::exception&) {
    Error error = CaughtError("exchange numbers with the other ranks");
    error.code = ErrorCode::kUnavailable;
    return error;
  }
}

Status PythonCollective::Sum(std::span<double> values) { return Exchange("sum", values); }
Status PythonCollective::Max(std::span<double> values) { return Exchange("max", values); }
Status PythonCollective::Broadcast(std::span<double> values, int root) {
  return Exchange("broadcast", values, root);
}

std::shared_ptr<Collective> FindCollective(const py::object& object) {
  if (object.is_none()) return nullptr;
  return std::make_shared<PythonCollective>(object);
}

}  // namespace zeus::python
