#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <span>

#include "zeus/base/result.h"
#include "zeus/optimizer/collective.h"

namespace zeus::python {

namespace py = pybind11;

// The ranks of a job, over a Python object with `rank`, `size`, `sum(values)`, `max(values)` and
// `broadcast(values, root)`, each of which takes and returns a list of floats: see
// zeus.utils.distributed. What it raises is an error here, but for KeyboardInterrupt, which is
// raised again as soon as Python code runs. Called from any thread, without the GIL or with it.
class PythonCollective final : public Collective {
 public:
  // With the GIL held. Throws what `rank` and `size` raise.
  explicit PythonCollective(py::object object);
  ~PythonCollective() override;
  PythonCollective(const PythonCollective&) = delete;
  PythonCollective& operator=(const PythonCollective&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  Status Sum(std::span<double> values) override;
  Status Max(std::span<double> values) override;
  Status Broadcast(std::span<double> values, int root) override;

 private:
  template <class... More>
  Status Exchange(const char* method, std::span<double> values, More... more);

  py::object object_;
  const int rank_;
  const int size_;
};

// Null for None: one process alone.
std::shared_ptr<Collective> CollectiveOf(const py::object& object);

}  // namespace zeus::python
