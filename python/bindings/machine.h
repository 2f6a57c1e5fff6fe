#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/device/node.h"

namespace zeus::python {

namespace py = pybind11;

// The devices that are visible to this process. Each device keeps the whole machine alive. Used
// with the GIL held.
class Machine : public std::enable_shared_from_this<Machine> {
 public:
  // Discovers the devices without the GIL, which may block. First restores what killed programs
  // left on devices. Throws Failure.
  static std::shared_ptr<Machine> Open(const std::string& sysfs, const std::string& procfs,
                                       const std::string& dev);

  const Node& node() const { return node_; }
  std::vector<std::shared_ptr<Gpu>> gpus() const { return Share(node_.gpus); }
  std::vector<std::shared_ptr<CpuPackage>> cpus() const { return Share(node_.cpus); }
  std::vector<std::shared_ptr<PowerRail>> rails() const { return Share(node_.rails); }

 private:
  Machine() = default;

  template <class T>
  std::vector<std::shared_ptr<T>> Share(const std::vector<std::unique_ptr<T>>& devices) const {
    std::vector<std::shared_ptr<T>> shared;
    for (const auto& device : devices) shared.emplace_back(shared_from_this(), device.get());
    return shared;
  }

  SystemClock clock_;
  Node node_;
};

void BindGpu(py::module_& module);

}  // namespace zeus::python
