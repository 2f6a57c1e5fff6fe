#include "zeus/device/sim/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace zeus::sim {
namespace {

constexpr Seconds kForever{std::numeric_limits<double>::infinity()};

const Workload& Entry(int workload) { return Workloads()[static_cast<std::size_t>(workload)]; }

Result<OperatingPoint> Ask(const Load& load, const GpuModel& model, const KnobSettings& knobs) {
  if (load.kind == Load::Kind::kSteps) return PredictStep(model, load.work, knobs);
  if (load.engine()) return PredictIteration(model, load.iteration, knobs);
  return Predict(model, Entry(load.workload), load.batch_size, knobs);
}

Status CheckSpec(const LoadSpec& spec) {
  const int kinds =
      static_cast<int>(spec.demand.has_value()) + static_cast<int>(spec.workload != nullptr) +
      static_cast<int>(spec.work.has_value()) + static_cast<int>(spec.engine_memory.has_value());
  if (kinds != 1)
    return Error{
        ErrorCode::kInvalidArgument,
        "a load is either a power draw, a workload, steps of known work or an inference engine"};
  if (!(spec.duration > Seconds(0)))
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("a load must last longer than 0 s, not {} s", spec.duration.count())};
  if (!(spec.heartbeat_timeout > Seconds(0)))
    return Error{ErrorCode::kInvalidArgument, "the heartbeat timeout of a load must be above 0 s"};
  if (!(spec.steps > 0.0))
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("a load does more than 0 steps, not {}", spec.steps)};
  if ((spec.demand || spec.engine_memory) && std::isfinite(spec.steps))
    return Error{ErrorCode::kInvalidArgument,
                 "a power draw or an engine has no steps after which it could end"};
  if (spec.waits && !spec.demand)
    return Error{ErrorCode::kInvalidArgument, "a load that waits must say which power it draws"};
  if (spec.demand && (!(*spec.demand >= Watts(0)) || !(*spec.demand <= kMaxDemand)))
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("a load draws 0 to {} W, not {} W", kMaxDemand.value(), spec.demand->value())};
  return Ok();
}

Result<int> PositionInCatalogue(const Workload& workload) {
  const auto found = std::ranges::find(Workloads(), workload.name, &Workload::name);
  if (found != Workloads().end()) return static_cast<int>(found - Workloads().begin());
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("workload {} is not in the catalogue", workload.name)};
}

}  // namespace

void Load::Predict(const GpuModel& model, const KnobSettings& present) {
  if (plain() || resting ||
      (knobs.power_limit == present.power_limit && knobs.clock_cap == present.clock_cap))
    return;
  const auto predicted = Ask(*this, model, present);
  if (!predicted.ok()) return;  // MakeLoad() has checked what can fail.
  knobs = present;
  point = predicted.value();
}

Status Load::Begin(const IterationWork& next, const GpuModel& model) {
  Load changed = *this;
  changed.iteration = next;
  ZEUS_TRY(changed.point, Ask(changed, model, changed.knobs));
  changed.resting = false;
  changed.steps_done = 0.0;
  changed.planned_steps = 1.0;
  *this = changed;
  return Ok();
}

Seconds Load::StepTimeAlone() const {
  if (kind == Kind::kSteps || engine()) return point.time_per_epoch;
  return point.time_per_epoch / static_cast<double>(StepsPerEpoch(Entry(workload), batch_size));
}

Result<Load> MakeLoad(const LoadSpec& spec, const GpuModel& model) {
  ZEUS_RETURN_IF_ERROR(CheckSpec(spec));
  Load load{};
  load.pid = spec.pid;
  load.heartbeat_timeout = spec.pid != 0 ? spec.heartbeat_timeout : kForever;
  load.planned_steps = spec.steps;
  load.work_end = kForever;
  load.waits = spec.waits;
  if (spec.demand) {
    load.kind = Load::Kind::kDraw;
    load.demand = *spec.demand;
    return load;
  }
  load.knobs = {.power_limit = model.default_limit, .clock_cap = std::nullopt};
  if (spec.engine_memory) {
    load.kind = Load::Kind::kEngine;
    load.engine_memory = *spec.engine_memory;
    load.resting = true;
    return load;
  }
  if (spec.workload != nullptr) {
    load.kind = Load::Kind::kWorkload;
    ZEUS_TRY(load.workload, PositionInCatalogue(*spec.workload));
    load.batch_size = spec.batch_size;
  } else {
    load.kind = Load::Kind::kSteps;
    load.work = *spec.work;
  }
  ZEUS_TRY(load.point, Ask(load, model, load.knobs));
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
  for (Load& load : loads()) {
    if (!load.engine() || load.resting || load.work_end > now) continue;
    load.resting = true;
    load.rests_since = load.work_end;
    load.work_end = kForever;
    load.steps_done = load.planned_steps;
  }
  const auto kept = std::remove_if(loads().begin(), loads().end(),
                                   [now](const Load& load) { return load.end() <= now; });
  size_ = static_cast<std::size_t>(kept - loads().begin());
}

void LoadTable::CountSteps(Seconds time, Joules energy) {
  for (Load& load : loads()) {
    if (load.engine()) load.energy.Add(energy * load.energy_share);
    if (!load.resting && load.step_time > Seconds(0)) load.steps_done += time / load.step_time;
  }
}

void LoadTable::ForeseeEndOfWork(Seconds now) {
  for (Load& load : loads())
    if (!load.plain() && !load.resting)
      load.work_end = now + (load.planned_steps - load.steps_done) * load.step_time;
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
    if (!load.plain() && !load.resting) return &load;
  return nullptr;
}

int LoadTable::workload_count() const {
  const auto loads = this->loads();
  return static_cast<int>(std::count_if(
      loads.begin(), loads.end(), [](const Load& load) { return !load.plain() && !load.resting; }));
}

bool LoadTable::only_waits() const {
  return std::ranges::all_of(loads(), [](const Load& load) { return load.waits || load.resting; });
}

bool LoadTable::none_works() const {
  return std::ranges::all_of(loads(), [](const Load& load) { return load.resting; });
}

}  // namespace zeus::sim
