#pragma once

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "zeus/device/nvml/nvml_api.h"

namespace zeus::nvml::testing {

// One board of the fake driver. Set the members before or between calls.
struct FakeBoard {
  std::string uuid = "GPU-00000000-0000-0000-0000-000000000000";
  std::string model = "Tesla V100-PCIE-16GB";
  unsigned bus = 0x3b;
  unsigned pci_device_id = 0x1db410de;
  unsigned architecture = 5;  // Volta.
  std::vector<std::string> partitions;
  bool mig_mode = false;

  unsigned long long energy = 5'000'000;
  unsigned energy_per_read = 0;  // How much the counter grows by being looked at.
  unsigned instant_power = 120'000;
  unsigned average_power = 110'000;
  unsigned memory_power = 0;
  unsigned min_limit = 100'000;
  unsigned max_limit = 250'000;
  unsigned requested_limit = 250'000;
  unsigned out_of_band_limit = 1'000'000;
  unsigned graphics_clock = 1380;
  unsigned long long reasons = 0;
  int persistence = 0;
  std::atomic<bool> open = false;  // By a search for a handle, until NVML is shut down.
  bool ignores_setters = false;    // Says yes and does nothing.

  unsigned scope = kScopeGpu;  // The one that power fields know.
  int value_type = kValueUnsignedLongLong;
  std::set<unsigned> unknown_fields;      // INVALID_ARGUMENT, as from an old driver.
  std::set<unsigned> unsupported_fields;  // NOT_SUPPORTED.

  Return failure = kSuccess;               // Every call returns this, unless it is kSuccess.
  std::map<std::string, Return> refusals;  // By the name of the member of NvmlApi.
  std::map<std::string, int> calls;
  std::mutex mutex;

  unsigned enforced_limit() const { return std::min(requested_limit, out_of_band_limit); }
};

// A driver with the boards that a test gives it, behind a real table. As NVML it counts its users
// and fails after fork() until it is initialised again; handles of the parent stay bad, and all do
// when the last user shuts it down. A search for a UUID opens the boards before it, too. One at a
// time; the calls are thread-safe.
class FakeNvml {
 public:
  explicit FakeNvml(std::size_t boards = 1);
  ~FakeNvml();
  FakeNvml(const FakeNvml&) = delete;
  FakeNvml& operator=(const FakeNvml&) = delete;

  NvmlApi api() const;
  FakeBoard& board(std::size_t index = 0) { return *boards_[index]; }
  Device handle(std::size_t index = 0);

  Return init_result = kSuccess;
  std::string init_text = "Driver Not Loaded";  // Text that nvmlErrorString returns.
  std::map<std::size_t, Return>
      handle_failures;  // Results of nvmlDeviceGetHandleByIndex, by index.

  int users() const { return users_; }
  int openings() const { return openings_; }  // How often the last user has shut it down.
  int calls(const std::string& function, std::size_t index = 0);

 private:
  friend struct FakeCalls;

  std::vector<std::unique_ptr<FakeBoard>> boards_;
  std::atomic<int> users_ = 0;
  std::atomic<int> process_ = 0;
  std::atomic<int> openings_ = 0;
};

}  // namespace zeus::nvml::testing
