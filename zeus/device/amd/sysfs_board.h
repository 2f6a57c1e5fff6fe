#pragma once

#include <filesystem>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "zeus/device/amd/amdgpu_sysfs.h"
#include "zeus/device/amd/board.h"

namespace zeus::amd {

// A board read through amdgpu's sysfs and hwmon files: needs no library and, for reading, no
// privileges. Thread-safe.
class SysfsBoard final : public Board {
 public:
  explicit SysfsBoard(Card card);

  Result<CounterSample> Energy() override;
  Result<Watts> Power(PowerKind kind) override;
  Result<Celsius> Temperature() override;
  Result<Utilization> Busy() override;
  Result<MemoryUse> Memory() override;
  Result<PowerCap> Cap() override;
  Status SetCap(Watts limit) override;
  Result<std::vector<Hertz>> SupportedClocks(ClockDomain domain) override;
  Result<Hertz> Clock(ClockDomain domain) override;
  Status LockClock(ClockDomain domain, ClockRange range) override;
  Status ResetClock(ClockDomain domain) override;

 private:
  struct ClockTable {
    std::vector<ClockLevel> levels;
    std::optional<ClockRange> overdrive;  // Where the driver takes any clock of a range.
  };

  // Says what a failed file means for the device: a missing one is not supported, a board that
  // is gone or a file that makes no sense is unavailable.
  Error AsDeviceError(Error error) const;
  Result<double> Number(const std::filesystem::path& path) const;
  Result<double> HwmonNumber(const char* file) const;
  Status Write(const std::filesystem::path& path, const std::string& text) const;
  Result<GpuMetrics> Metrics() const;

  Result<ClockTable> Table(ClockDomain domain);  // The three below need mutex_.
  Status Apply(ClockDomain domain, const ClockTable& table, ClockRange range);
  Status SetLevel(const std::string& level);

  const std::filesystem::path device_;
  const std::filesystem::path hwmon_;

  std::mutex mutex_;
  std::optional<ClockTable> tables_[2];  // By domain; fixed while the driver is loaded.
  std::set<ClockDomain> locked_;
  std::string level_before_us_;  // The value that power_dpm_force_performance_level had before the
                                 // first lock.
};

}  // namespace zeus::amd
