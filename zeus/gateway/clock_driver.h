#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/base/ticker.h"
#include "zeus/gateway/governed_group.h"
#include "zeus/gateway/request_observer.h"
#include "zeus/metrics/metric.h"

namespace zeus::gateway {

struct ClockDriverOptions {
  ServiceTargets targets{};
  // The one to begin with, and the furthest that Switch() goes: who asked for an observer can be
  // sure that no clock is touched.
  GovernorSwitch mode = GovernorSwitch::kOn;
  std::vector<GovernedGpus> groups{};
  // Where knowledge of engines is kept; nullopt: nowhere.
  std::optional<std::filesystem::path> knowledge_folder{};
};

// Drives a governor for the GPUs of each upstream, on a thread of its own: the proxy's thread only
// queues what it saw, so no request ever waits for a driver, and nothing that fails here fails a
// request. The clock must outlive it. Thread-safe, except for Step() and Stop().
class ClockDriver final : public RequestObserver {
 public:
  // kInvalidArgument without GPUs, or when two upstreams share one.
  static Result<std::unique_ptr<ClockDriver>> Create(ClockDriverOptions options,
                                                     const Clock& clock);
  ~ClockDriver() override;
  ClockDriver(const ClockDriver&) = delete;
  ClockDriver& operator=(const ClockDriver&) = delete;

  // Calls Step() on a thread until Stop(). Tests call it themselves.
  void StartThread();
  // Hands the queued events to the governors and lets them decide when that is due. Returns when to
  // come again.
  TimePoint Step();
  // Ends the thread, keeps what was learned, and puts the clocks back. The error names a clock that
  // could not be put back. No event may come any more.
  Status Stop();

  void OnRequest(RequestEvent event) override;
  std::optional<Hertz> LockedClock(std::size_t upstream) const override;

  // Takes effect with the next step, which comes at once. kConflict beyond the mode of the options.
  Status Switch(GovernorSwitch mode);
  // GET /zeus/governor.
  Json ToJson() const;
  void AddMetrics(MetricSet& set) const;
  // A sentence for each group, for the start and for the end of the program.
  std::vector<std::string> Announcement() const;
  std::vector<std::string> Summary() const;

 private:
  ClockDriver(ClockDriverOptions options, const Clock& clock);
  void HandOver(const std::vector<RequestEvent>& events);
  void Publish();
  std::vector<GroupStatus> Published() const;

  const ServiceTargets targets_;
  const GovernorSwitch furthest_;
  const Clock& clock_;
  const std::optional<EngineKnowledgeStore> store_;
  std::vector<std::unique_ptr<GovernedGroup>> groups_{};  // Belong to the thread.
  TimePoint next_{};
  GovernorSwitch present_;  // The mode of the last decision.
  std::atomic<GovernorSwitch> wanted_;
  bool stopped_ = false;

  mutable std::mutex mutex_;
  std::vector<RequestEvent> queue_{};                 // Guarded by mutex_.
  bool overflowed_ = false;                           // Guarded by mutex_: events were dropped.
  std::vector<GroupStatus> published_{};              // Guarded by mutex_; one for each group.
  std::vector<std::optional<std::size_t>> places_{};  // Group of each upstream; constant.
  std::unique_ptr<Ticker> thread_{};
};

// Parses "off", "observe" or "on".
Result<GovernorSwitch> ParseGovernorSwitch(std::string_view text);

}  // namespace zeus::gateway
