#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/device/sim/gpu_model.h"
#include "zeus/device/sim/inference/physics.h"
#include "zeus/device/sim/power_history.h"
#include "zeus/device/sim/step_work.h"
#include "zeus/device/sim/workload.h"

namespace zeus::sim {

// The most that a plain load may ask for.
inline constexpr Watts kMaxDemand{100'000};

// Work that a process runs on a GPU.
struct LoadSpec {
  // Exactly one of the four: a plain power draw (before limits), a workload of the catalogue,
  // training steps of known work, or an inference engine that holds so many bytes of memory.
  std::optional<Watts> demand{};
  const Workload* workload = nullptr;
  std::optional<StepWork> work{};
  std::optional<std::uint64_t> engine_memory{};
  unsigned batch_size = 0;  // Batch size of `workload`.
  // It ends by itself when so many steps are done, whatever becomes of the clock meanwhile.
  double steps = std::numeric_limits<double>::infinity();
  // Draws its demand only while the GPU runs nothing else: a process that waits for data of another
  // one and asks for them all the time.
  bool waits = false;

  // Process that runs the load. 0 for none: such a load needs no heartbeats.
  int pid = 0;
  // Node time after which the load of a process ends unless a heartbeat comes. The default is meant
  // in real time: a caller that attaches to a node with a time scale multiplies it.
  Seconds heartbeat_timeout{3.0};
  // The load ends this long after it was attached; infinite: when it is detached.
  Seconds duration{std::numeric_limits<double>::infinity()};
};

// A load that is attached to a GPU.
struct Load {
  std::uint32_t id;
  int pid;
  Seconds planned_end;
  Seconds heartbeat_timeout;  // Infinite without a process.
  Seconds heartbeat_due;
  double planned_steps;  // Infinite unless it ends by itself.
  Seconds work_end;      // When planned_steps are done, if the regime lasts.

  enum class Kind : std::uint8_t { kDraw, kWorkload, kSteps, kEngine } kind;
  Watts demand;  // Power of a plain draw.
  bool waits;    // Draws only while nothing else runs.
  int workload;  // Index into the catalogue.
  unsigned batch_size;
  StepWork work;  // Work of one step, for kSteps.

  // An engine runs one iteration at a time (a step) and rests between them: it then keeps its
  // memory and draws nothing.
  IterationWork iteration;
  std::uint64_t engine_memory;
  bool resting;
  Seconds rests_since;
  double energy_share;  // Part of the regime's energy that belongs to the engine.
  EnergySum energy;     // Exact energy of its iterations up to the start of the regime.

  // The operating point of the workload or the steps under `knobs`; computed again when the knobs
  // change.
  KnobSettings knobs;
  OperatingPoint point;

  // Duration of a step under the present knobs and sharing, and steps done up to the start of the
  // regime.
  Seconds step_time;
  double steps_done;

  // When it ends unless a heartbeat comes first.
  Seconds end() const { return std::min({planned_end, heartbeat_due, work_end}); }
  void Beat(Seconds now) { heartbeat_due = now + heartbeat_timeout; }

  bool plain() const { return kind == Kind::kDraw; }
  bool engine() const { return kind == Kind::kEngine; }
  // Starts an engine's next iteration. kInvalidArgument when its work means nothing.
  Status Begin(const IterationWork& next, const GpuModel& model);
  void Predict(const GpuModel& model, const KnobSettings& present);
  Seconds StepTimeAlone() const;  // As if no other workload shared the GPU.
};

// kInvalidArgument when the spec means nothing.
Result<Load> MakeLoad(const LoadSpec& spec, const GpuModel& model);

// The loads of one GPU in the order of attachment. Trivially copyable. One owner.
class LoadTable {
 public:
  std::span<Load> loads() { return {loads_.data(), size_}; }
  std::span<const Load> loads() const { return {loads_.data(), size_}; }

  // kUnavailable when it is full. The id is never used again.
  Result<std::uint32_t> Add(Load load);
  void Remove(std::uint32_t id);
  // An engine whose iteration has ended rests instead.
  void RemoveEnded(Seconds now);
  // The workloads that ran in the last `time`, which took `energy`, have done so many steps more.
  void CountSteps(Seconds time, Joules energy);
  // To be called whenever step times have changed.
  void ForeseeEndOfWork(Seconds now);

  const Load* Find(std::uint32_t id) const;
  Load* Find(std::uint32_t id);

  Seconds next_end() const;
  const Load* first_workload() const;
  int workload_count() const;
  bool only_waits() const;
  bool none_works() const;  // Whether it is empty but for engines that rest.

 private:
  std::array<Load, 8> loads_{};
  std::size_t size_ = 0;
  std::uint32_t next_id_ = 1;
};

}  // namespace zeus::sim
