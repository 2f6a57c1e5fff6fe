#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <span>

#include "zeus/base/result.h"
#include "zeus/optimizer/collective.h"

namespace zeus::python {

namespace py = pybind11;

// Implements a Collective by a Python object with `rank`, `size`, `sum(values)`, `max(values)` and
// `broadcast(values, root)`, each of which takes and returns a list of floats: see
// zeus.utils.distributed. Exceptions become errors here; KeyboardInterrupt is also raised again as
// soon as Python code runs. Can be called from any thread, with or without the GIL.
class PythonCollective final : public Collective {
 public:
  // Must be called with the GIL held. Throws what `rank` and `size` raise.
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

// Returns null for None, which stands for a single process.
std::shared_ptr<Collective> FindCollective(const py::object& object);

}  // namespace zeus::python
