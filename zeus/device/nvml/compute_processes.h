#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"

namespace zeus {

// The ids of the processes that compute on the NVIDIA GPU with this UUID, as NVML lists them for
// this user. A process in a container shows by its id outside. `library` is for tests; nullopt: the
// driver's. Returns kNotFound without NVML, and kUnavailable or kNotSupported when it does not
// tell.
Result<std::vector<int>> ComputeProcesses(const std::string& uuid,
                                          const std::optional<std::string>& library = std::nullopt);

// How busy one process kept a GPU around one moment.
struct ProcessSample {
  std::int64_t pid = 0;
  WallTime time{};
  double compute = 0;  // Share of the time in which a kernel of it ran, 0 to 1.
};

// Asks NVML for samples of the utilisation by processes. It keeps NVML initialised while it lives.
// Thread-safe, as NVML is.
class ProcessSampler {
 public:
  // `library` and errors as for ComputeProcesses().
  static Result<std::unique_ptr<ProcessSampler>> Open(
      const std::optional<std::string>& library = std::nullopt);
  ~ProcessSampler();
  ProcessSampler(const ProcessSampler&) = delete;
  ProcessSampler& operator=(const ProcessSampler&) = delete;

  // The samples after `since` that the driver still has: some seconds. Empty when no process ran.
  Result<std::vector<ProcessSample>> Samples(const std::string& uuid, WallTime since);

 private:
  struct Functions;
  explicit ProcessSampler(std::unique_ptr<Functions> functions);
  const std::unique_ptr<Functions> functions_;
};

}  // namespace zeus
