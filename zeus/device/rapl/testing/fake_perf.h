#pragma once

#include <cerrno>
#include <cmath>
#include <cstdint>
#include <map>
#include <utility>

#include "zeus/base/units.h"
#include "zeus/device/rapl/perf_power.h"

namespace zeus::rapl::testing {

// A kernel with a power PMU. Must outlive what uses its api(). Counts change only between reads.
class FakePerf {
 public:
  static constexpr std::uint64_t kPackage = 2;
  static constexpr std::uint64_t kMemory = 3;

  PerfApi api() {
    return {.open =
                [this](std::uint32_t type, std::uint64_t config, int cpu) {
                  if (const auto error = refused_.find(cpu); error != refused_.end())
                    return -error->second;
                  last_type_ = type;
                  const int descriptor = next_descriptor_++;
                  open_[descriptor] = {config, cpu};
                  return descriptor;
                },
            .read =
                [this](int descriptor, std::uint64_t& count) {
                  if (read_error_ != 0) return read_error_;
                  count = counts_[open_.at(descriptor)];
                  return 0;
                },
            .close = [this](int descriptor) { open_.erase(descriptor); }};
  }

  void Use(int cpu, std::uint64_t config, Joules energy) {
    counts_[{config, cpu}] +=
        static_cast<std::uint64_t>(std::llround(std::ldexp(energy.value(), 32)));
  }
  void SetCount(int cpu, std::uint64_t config, std::uint64_t count) {
    counts_[{config, cpu}] = count;
  }
  void RefuseOpen(int cpu, int error) { refused_[cpu] = error; }
  void FailReads(int error) { read_error_ = error; }

  std::size_t open_descriptors() const { return open_.size(); }
  std::uint32_t last_type() const { return last_type_; }

 private:
  using EventOnCpu = std::pair<std::uint64_t, int>;

  std::map<EventOnCpu, std::uint64_t> counts_;
  std::map<int, EventOnCpu> open_;
  std::map<int, int> refused_;
  int read_error_ = 0;
  int next_descriptor_ = 100;
  std::uint32_t last_type_ = 0;
};

}  // namespace zeus::rapl::testing
