#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/live/node_devices.h"
#include "zeus/live/power_archive.h"
#include "zeus/monitor/node_monitor.h"

namespace zeus::live {

// A part of the past: GET /v1/history.
struct HistoryRequest {
  std::vector<const NodeDevice*> devices{};
  std::optional<double> since{};  // By the monotonic clock; nullopt: as far as the step remembers.
  std::int64_t step = 1;          // Seconds: that of a level of PowerArchive.
};

// The power of all devices over the last two days, in bounded memory, taken from the recording: no
// driver call, and no thread. Thread-safe; the recorder must outlive it.
class NodeHistory {
 public:
  // A second counts as idle when the device was busy for less than this share of it.
  static constexpr double kIdleBelow = 0.05;

  explicit NodeHistory(NodeMonitor& recorder);

  // Takes over the seconds that are settled by now. To be called every few seconds, so that nothing
  // is taken from what the recorder remembers coarsely.
  void Update();

  // The answer as JSON (docs/formats.md), up to the present moment. kInvalidArgument when the step
  // is none of the archive's.
  Result<std::string> Document(const HistoryRequest& request);

 private:
  void UpdateDevice(std::size_t device);  // Needs mutex_.
  bool WasIdle(std::size_t device, TimePoint begin, TimePoint end) const;

  NodeMonitor& recorder_;
  const TimePoint start_;
  std::mutex mutex_;
  PowerArchive archive_;            // Guarded by mutex_, as is the next.
  std::vector<std::int64_t> next_;  // By device: the second that is taken over next.
};

}  // namespace zeus::live
