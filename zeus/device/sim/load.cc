#include "zeus/device/sim/load.h"

#include <fmt/format.h>

#include <algorithm>

namespace zeus::sim {
namespace {

constexpr Seconds kForever{std::numeric_limits<double>::infinity()};

}  // namespace

void Load::Predict(const GpuModel& model, const KnobSettings& present) {
  if (plain() || (knobs.power_limit == present.power_limit && knobs.clock_cap == present.clock_cap))
    return;
  const Workload& entry = Workloads()[static_cast<std::size_t>(workload)];
  const auto predicted = sim::Predict(model, entry, batch_size, present);
  if (!predicted.ok()) return;  // MakeLoad() has checked what can fail.
  knobs = present;
  point = predicted.value();
}

Seconds Load::StepTimeAlone() const {
  const Workload& entry = Workloads()[static_cast<std::size_t>(workload)];
  return point.time_per_epoch / static_cast<double>(StepsPerEpoch(entry, batch_size));
}

Result<Load> MakeLoad(const LoadSpec& spec, const GpuModel& model) {
  if (spec.demand.has_value() == (spec.workload != nullptr))
    return Error{ErrorCode::kInvalidArgument, "a load is either a power draw or a workload"};
  if (!(spec.duration > Seconds(0)))
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("a load must last longer than 0 s, not {} s", spec.duration.count())};
  if (!(spec.heartbeat_timeout > Seconds(0)))
    return Error{ErrorCode::kInvalidArgument, "the heartbeat timeout of a load must be above 0 s"};

  Load load{};
  load.pid = spec.pid;
  load.heartbeat_timeout = spec.pid != 0 ? spec.heartbeat_timeout : kForever;
  load.workload = -1;
  if (spec.demand) {
    if (!(*spec.demand >= Watts(0)) || !(*spec.demand <= kMaxDemand))
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("a load draws 0 to {} W, not {} W", kMaxDemand.value(),
                               spec.demand->value())};
    load.demand = *spec.demand;
    return load;
  }
  const KnobSettings knobs{.power_limit = model.default_limit, .clock_cap = std::nullopt};
  ZEUS_TRY(load.point, Predict(model, *spec.workload, spec.batch_size, knobs));
  load.knobs = knobs;
  load.batch_size = spec.batch_size;
  const auto same = [&](const Workload& entry) { return entry.name == spec.workload->name; };
  const auto entry = std::find_if(Workloads().begin(), Workloads().end(), same);
  if (entry == Workloads().end())
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("workload {} is not in the catalogue", spec.workload->name)};
  load.workload = static_cast<int>(entry - Workloads().begin());
  return load;
}

Result<std::uint32_t> LoadTable::Add(Load load) {
  if (size_ == loads_.size())
    return Error{ErrorCode::kUnavailable,
                 fmt::format("the GPU already runs {} loads: wait until one ends", size_)};
  load.id = next_id_++;
  loads_[size_++] = load;
  return load.id;
}

void LoadTable::Remove(std::uint32_t id) {
  const auto kept = std::remove_if(loads().begin(), loads().end(),
                                   [id](const Load& load) { return load.id == id; });
  size_ = static_cast<std::size_t>(kept - loads().begin());
}

void LoadTable::RemoveEnded(Seconds now) {
  const auto kept = std::remove_if(loads().begin(), loads().end(),
                                   [now](const Load& load) { return load.end() <= now; });
  size_ = static_cast<std::size_t>(kept - loads().begin());
}

void LoadTable::CountSteps(Seconds time) {
  for (Load& load : loads())
    if (load.step_time > Seconds(0)) load.steps_done += time / load.step_time;
}

const Load* LoadTable::Find(std::uint32_t id) const {
  for (const Load& load : loads())
    if (load.id == id) return &load;
  return nullptr;
}

Load* LoadTable::Find(std::uint32_t id) {
  for (Load& load : loads())
    if (load.id == id) return &load;
  return nullptr;
}

Seconds LoadTable::next_end() const {
  Seconds next(std::numeric_limits<double>::infinity());
  for (const Load& load : loads()) next = std::min(next, load.end());
  return next;
}

const Load* LoadTable::first_workload() const {
  for (const Load& load : loads())
    if (!load.plain()) return &load;
  return nullptr;
}

int LoadTable::workload_count() const {
  const auto loads = this->loads();
  return static_cast<int>(
      std::count_if(loads.begin(), loads.end(), [](const Load& load) { return !load.plain(); }));
}

}  // namespace zeus::sim
