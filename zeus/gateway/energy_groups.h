#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/units.h"
#include "zeus/gateway/request_observer.h"
#include "zeus/monitor/energy_monitor.h"
#include "zeus/monitor/inference/attribution.h"
#include "zeus/monitor/inference/energy_feed.h"

namespace zeus::gateway {

// The GPUs of one upstream, as devices of the energy monitor.
struct UpstreamGpus {
  std::string name{};                  // The upstream's, for people.
  std::vector<std::size_t> devices{};  // Empty: its energy cannot be measured.
  std::string absent_reason{};         // Why it cannot.
};

// Divides the energy of the upstreams' GPUs among their requests. Upstreams that share a GPU are
// one group, with one attribution; the sensors of all groups are read from the monitor's recording.
// One owner. The monitor must outlive it.
class EnergyGroups {
 public:
  // Without a monitor no upstream has energy. The observer, which may be null, knows the clocks to
  // which GPUs are locked; it must outlive the groups.
  EnergyGroups(EnergyMonitor* monitor, std::vector<UpstreamGpus> upstreams,
               const RequestObserver* observer = nullptr);

  // The functions of InferenceAttribution, for the upstream's group. Those of an upstream without
  // energy do nothing.
  void RequestArrived(std::size_t upstream, InferenceRequestId id,
                      InferenceAttribution::Arrival arrival);
  void TokensArrived(std::size_t upstream, InferenceRequestId id, TimePoint time, double tokens);
  void CountsSeen(std::size_t upstream, InferenceRequestId id, const TokenCounts& counts);
  struct End {
    TimePoint time{};
    RequestOutcome outcome{};
    TokenCounts counts{};
    ServerTimings timings{};
  };
  void RequestEnded(std::size_t upstream, InferenceRequestId id, const End& end);
  void RunningRequestsSeen(std::size_t upstream, TimePoint time, double running);
  std::optional<RequestEnergy> Estimate(std::size_t upstream, InferenceRequestId id) const;

  // Hands over what the sensors have measured since the last call. Cheap when nothing is due.
  void Step(TimePoint now);
  // Requests whose energy has become final since the last call.
  std::vector<SettledRequest> TakeSettled();

  // Why the upstream's energy is unknown at the moment; empty when it is known.
  const std::string& absent_reason(std::size_t upstream) const;
  // "gpu:0", ...
  const std::vector<std::string>& gpus(std::size_t upstream) const {
    return places_[upstream].gpus;
  }
  // "counter", "integrated" or "model": where the joules come from.
  std::string Source(std::size_t upstream) const;

  // Figures of one group, for metrics and people.
  struct Group {
    std::vector<std::size_t> upstreams{};
    std::vector<std::size_t> devices{};
    std::unique_ptr<InferenceAttribution> attribution{};
    std::unique_ptr<InferenceEnergyFeed> feed{};
    std::string lost_reason{};  // Why a device cannot be read now.
    // Power limits and locked clocks, with the time since when they hold. The law changes with them
    // when the sensors have shown that time; the last one is the present setting.
    std::deque<std::pair<TimePoint, std::string>> settings{};
    TimePoint next_check{};                    // When devices are checked next.
    std::optional<TimePoint> checked_since{};  // The first check.
  };
  const std::vector<Group>& groups() const { return groups_; }
  std::optional<std::size_t> GroupIndex(std::size_t upstream) const {
    return places_[upstream].group;
  }
  EngineIndex engine(std::size_t upstream) const { return places_[upstream].engine; }
  // Power of a group over the sensors' last update, and the lowest clock of its GPUs.
  std::optional<Watts> Power(const Group& group) const;
  std::optional<Hertz> GraphicsClock(const Group& group) const;

 private:
  struct Place {
    std::optional<std::size_t> group{};
    EngineIndex engine = 0;
    std::string absent_reason{};
    std::vector<std::string> gpus{};
  };

  void Assign(std::size_t upstream, const UpstreamGpus& spec);
  // Finds out whether the devices can be read, and whether their limits have changed.
  void Check(Group& group, TimePoint now);
  InferenceAttribution* Attribution(std::size_t upstream) const;

  std::string Setting(const Group& group) const;

  EnergyMonitor* const monitor_;
  const RequestObserver* const observer_;
  std::vector<Place> places_{};
  std::vector<Group> groups_{};
};

}  // namespace zeus::gateway
