#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/device/rapl/rapl_package.h"

namespace zeus::rapl {

// The system calls behind a perf counter, so that tests can stand in for the kernel.
struct PerfApi {
  // perf_event_open(2) for counting one event on one CPU: a descriptor, or minus errno.
  std::function<int(std::uint32_t type, std::uint64_t config, int cpu)> open;

  // read(2) of the 8-byte count: 0, or an errno.
  std::function<int(int descriptor, std::uint64_t& count)> read;

  std::function<void(int descriptor)> close;
};
PerfApi SystemPerfApi();

// The kernel's "power" PMU: what <sysfs>/bus/event_source/devices/power says.
struct PowerPmu {
  struct Event {
    std::uint64_t config = 0;
    double joules_per_count = 0.0;
  };

  std::uint32_t type = 0;
  std::vector<int> cpus;  // One per package or die.
  std::optional<Event> package;
  std::optional<Event> memory;
};

// kNotFound when the kernel has no such PMU.
Result<PowerPmu> ReadPowerPmu(const std::filesystem::path& sysfs);

// One event on one CPU per die, summed. The kernel widens the hardware's counter to 64 bits and
// serves its overflow, so readings may be any time apart.
class PerfCounter final : public DomainCounter {
 public:
  // `api` is copied. kPermissionDenied when perf_event_paranoid forbids it.
  static Result<std::unique_ptr<PerfCounter>> Open(const PerfApi& api, const PowerPmu& pmu,
                                                   const PowerPmu::Event& event,
                                                   const std::vector<int>& cpus);
  ~PerfCounter() override;
  PerfCounter(const PerfCounter&) = delete;
  PerfCounter& operator=(const PerfCounter&) = delete;

  Result<EnergyReading> Read() override;
  std::optional<Seconds> LongestReadInterval() const override { return std::nullopt; }

 private:
  struct OpenEvent {
    int cpu;
    int descriptor;
    std::uint64_t last = 0;
  };

  PerfCounter(const PerfApi& api, double joules_per_count)
      : api_(api), joules_per_count_(joules_per_count) {}

  const PerfApi api_;
  const double joules_per_count_;
  std::mutex mutex_;
  std::vector<OpenEvent> events_;  // Guarded by mutex_, as is total_.
  EnergyReading total_;
};

}  // namespace zeus::rapl
