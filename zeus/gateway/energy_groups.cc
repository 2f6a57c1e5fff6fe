#include "zeus/gateway/energy_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

namespace zeus::gateway {
namespace {

// The recording of a sensor is final this many of its updates behind.
constexpr double kUpdatesUntilSettled = 3;
constexpr Seconds kCheckPeriod{0.1};
// A sensor that has shown nothing for this long after the start is taken to be lost.
constexpr Seconds kFirstReadings{2.0};
constexpr Hertz kClockBand = Hertz::FromMega(300);

bool Overlap(const std::vector<std::size_t>& one, const std::vector<std::size_t>& other) {
  return std::ranges::any_of(one, [&other](std::size_t device) {
    return std::ranges::find(other, device) != other.end();
  });
}

}  // namespace

EnergyGroups::EnergyGroups(EnergyMonitor* monitor, std::vector<UpstreamGpus> upstreams,
                           const RequestObserver* observer)
    : monitor_(monitor), observer_(observer), places_(upstreams.size()) {
  for (std::size_t i = 0; i < upstreams.size(); ++i) {
    places_[i].absent_reason = upstreams[i].absent_reason;
    if (monitor_ == nullptr || upstreams[i].devices.empty()) {
      if (places_[i].absent_reason.empty())
        places_[i].absent_reason = "no GPU of this machine belongs to " + upstreams[i].name;
      continue;
    }
    Assign(i, upstreams[i]);
  }
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    Group& group = groups_[g];
    group.attribution = std::make_unique<InferenceAttribution>();
    group.feed =
        std::make_unique<InferenceEnergyFeed>(*monitor_, group.devices, *group.attribution);
    for (const std::size_t upstream : group.upstreams) {
      places_[upstream].group = g;
      places_[upstream].engine = group.attribution->AddEngine({.name = upstreams[upstream].name});
      for (const std::size_t device : upstreams[upstream].devices)
        places_[upstream].gpus.push_back(monitor_->device_name(device));
    }
  }
}

// Puts the upstream into a group with all others that use one of its GPUs.
void EnergyGroups::Assign(std::size_t upstream, const UpstreamGpus& spec) {
  Group merged;
  merged.upstreams = {upstream};
  merged.devices = spec.devices;
  std::erase_if(groups_, [&merged](Group& group) {
    if (!Overlap(group.devices, merged.devices)) return false;
    merged.upstreams.insert(merged.upstreams.begin(), group.upstreams.begin(),
                            group.upstreams.end());
    merged.devices.insert(merged.devices.end(), group.devices.begin(), group.devices.end());
    return true;
  });
  std::ranges::sort(merged.devices);
  const auto repeated = std::ranges::unique(merged.devices);
  merged.devices.erase(repeated.begin(), repeated.end());
  groups_.push_back(std::move(merged));
}

InferenceAttribution* EnergyGroups::Attribution(std::size_t upstream) const {
  const auto& group = places_[upstream].group;
  return group ? groups_[*group].attribution.get() : nullptr;
}

void EnergyGroups::RequestArrived(std::size_t upstream, InferenceRequestId id,
                                  InferenceAttribution::Arrival arrival) {
  arrival.engine = places_[upstream].engine;
  if (auto* const attribution = Attribution(upstream)) attribution->RequestArrived(id, arrival);
}

void EnergyGroups::TokensArrived(std::size_t upstream, InferenceRequestId id, TimePoint time,
                                 double tokens) {
  if (auto* const attribution = Attribution(upstream)) attribution->TokensArrived(id, time, tokens);
}

void EnergyGroups::CountsSeen(std::size_t upstream, InferenceRequestId id,
                              const TokenCounts& counts) {
  if (auto* const attribution = Attribution(upstream)) attribution->CountsSeen(id, counts);
}

void EnergyGroups::RequestEnded(std::size_t upstream, InferenceRequestId id, const End& end) {
  if (auto* const attribution = Attribution(upstream))
    attribution->RequestEnded(id, end.time, end.outcome, end.counts, end.timings);
}

void EnergyGroups::RunningRequestsSeen(std::size_t upstream, TimePoint time, double running) {
  if (auto* const attribution = Attribution(upstream))
    attribution->RunningRequestsSeen(places_[upstream].engine, time, running);
}

std::optional<RequestEnergy> EnergyGroups::Estimate(std::size_t upstream,
                                                    InferenceRequestId id) const {
  const auto* const attribution = Attribution(upstream);
  return attribution == nullptr ? std::nullopt : attribution->Estimate(id);
}

void EnergyGroups::Step(TimePoint now) {
  for (Group& group : groups_) {
    if (now >= group.next_check) {
      group.next_check = now + kCheckPeriod;
      Check(group, now);
    }
    // Readings come late: those from before a change belong to the law before it.
    const auto told = group.feed->told_until();
    while (!group.settings.empty() && group.settings.front().first <= told.value_or(now)) {
      group.attribution->SettingChanged(group.settings.front().first,
                                        group.settings.front().second);
      if (group.settings.size() == 1) break;
      group.settings.pop_front();
    }
    group.feed->Step(now);
  }
}

void EnergyGroups::Check(Group& group, TimePoint now) {
  group.lost_reason.clear();
  if (!group.checked_since) group.checked_since = now;
  const bool expected = group.feed->told_until() || now - *group.checked_since > kFirstReadings;
  for (const std::size_t device : group.devices) {
    const TimePoint end = now - kUpdatesUntilSettled * monitor_->Now(device).update_period;
    const auto measured = monitor_->EnergyBetween(device, end - kCheckPeriod, end);
    if (!measured.ok() && expected)
      group.lost_reason = fmt::format("{} cannot be read: {}", monitor_->device_name(device),
                                      measured.error().message);
  }
  std::string setting = Setting(group);
  if (group.settings.empty() || group.settings.back().second != setting)
    group.settings.emplace_back(now, std::move(setting));
}

// A clock that is not locked is no setting: it wanders with the load. Locked ones count by bands,
// because neighbouring clocks differ by less than a law of its own would take to learn.
std::string EnergyGroups::Setting(const Group& group) const {
  std::string setting;
  for (const std::size_t device : group.devices) {
    const auto limit = monitor_->Now(device).requested_limit;
    if (limit.ok()) setting += fmt::format("{:.0f} W ", limit.value().value());
  }
  for (const std::size_t upstream : group.upstreams) {
    const auto clock = observer_ == nullptr ? std::nullopt : observer_->LockedClock(upstream);
    if (clock) setting += fmt::format("band {:.0f} ", std::round(*clock / kClockBand));
  }
  return setting;
}

std::vector<SettledRequest> EnergyGroups::TakeSettled() {
  std::vector<SettledRequest> all;
  for (const Group& group : groups_) {
    auto settled = group.attribution->TakeSettled();
    all.insert(all.end(), settled.begin(), settled.end());
  }
  return all;
}

const std::string& EnergyGroups::absent_reason(std::size_t upstream) const {
  const Place& place = places_[upstream];
  return place.group ? groups_[*place.group].lost_reason : place.absent_reason;
}

std::string EnergyGroups::Source(std::size_t upstream) const {
  const auto& group = places_[upstream].group;
  if (!group) return {};
  return EnergySourceName(monitor_->Now(groups_[*group].devices.front()).source);
}

std::optional<Watts> EnergyGroups::Power(const Group& group) const {
  Watts sum;
  for (const std::size_t device : group.devices) {
    const auto power = monitor_->Now(device).power;
    if (!power.ok()) return std::nullopt;
    sum += power.value();
  }
  return sum;
}

std::optional<Hertz> EnergyGroups::GraphicsClock(const Group& group) const {
  std::optional<Hertz> lowest;
  for (const std::size_t device : group.devices) {
    const auto clock = monitor_->Now(device).graphics_clock;
    if (!clock.ok()) return std::nullopt;
    lowest = lowest ? std::min(*lowest, clock.value()) : clock.value();
  }
  return lowest;
}

}  // namespace zeus::gateway
