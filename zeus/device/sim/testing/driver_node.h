#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <functional>
#include <string_view>

#include "zeus/base/clock.h"
#include "zeus/base/file_descriptor.h"
#include "zeus/base/testing/scoped_variable.h"
#include "zeus/base/testing/temporary_directory.h"
#include "zeus/device/sim/node_directory.h"
#include "zeus/device/sim/node_layout.h"

namespace zeus::sim::testing {

// A simulated node that the simulated driver library finds when this process initialises it next:
// through the environment, so one at a time and not while other threads run. The test moves its
// time, and real time passes besides.
class DriverNode {
 public:
  explicit DriverNode(std::string_view gpus)
      : node_(
            directory_.Create(kName, {.gpus = ParseGpuList(gpus).value(), .seed = 7, .ambient = {}})
                .value()) {}

  NodeDirectory& directory() { return directory_; }

  // For everybody who has the node open: it started that much earlier.
  void Advance(Seconds by) {
    const FileDescriptor file(::open(directory_.NodeFile(kName).c_str(), O_RDWR | O_CLOEXEC));
    double start = 0;
    constexpr auto kPlace = static_cast<off_t>(offsetof(NodeHeader, start));
    const bool read = ::pread(file.get(), &start, sizeof start, kPlace) == sizeof start;
    start -= by.count() / node_.time_scale();
    if (!read || ::pwrite(file.get(), &start, sizeof start, kPlace) != sizeof start) std::abort();
  }

  GpuCore Snapshot(unsigned gpu = 0) const { return node_.Read(gpu, node_.Now()).value().core; }

  void Inject(const Fault& fault, unsigned gpu = 0) {
    Change(gpu, [&](GpuCore& core) { return core.InjectFault(fault); });
  }
  void ClearFaults(unsigned gpu = 0) {
    Change(gpu, [](GpuCore& core) {
      core.ClearFaults();
      return Ok();
    });
  }
  void Attach(const LoadSpec& load, unsigned gpu = 0) {
    Change(gpu, [&](GpuCore& core) -> Status {
      ZEUS_RETURN_IF_ERROR(core.AttachLoad(load));
      return Ok();
    });
  }
  void SetPowerLimit(Watts limit, unsigned gpu = 0) {
    Change(gpu, [&](GpuCore& core) { return core.SetPowerLimit(limit); });
  }

  static constexpr const char* kName = "test";

 private:
  void Change(unsigned gpu, const std::function<Status(GpuCore&)>& change) {
    if (!node_.Update(gpu, change).ok()) std::abort();
  }

  SystemClock clock_;
  zeus::testing::TemporaryDirectory files_;
  zeus::testing::ScopedVariable directory_variable_{"ZEUS_SIM_DIR", files_.path().string()};
  zeus::testing::ScopedVariable node_variable_{"ZEUS_SIM_NODE", kName};
  NodeDirectory directory_ = NodeDirectory::FromEnvironment(clock_).value();
  SharedNode node_;
};

}  // namespace zeus::sim::testing
