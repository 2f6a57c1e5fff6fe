#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "zeus/base/random.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/device/gpu.h"
#include "zeus/device/sim/fault.h"
#include "zeus/device/sim/gpu_model.h"
#include "zeus/device/sim/load.h"
#include "zeus/device/sim/operating_state.h"
#include "zeus/device/sim/power_history.h"
#include "zeus/device/sim/sensors.h"

namespace zeus::sim {

// An inference engine on a GPU, at a moment.
struct EngineState {
  bool resting;   // No iteration runs.
  Seconds end;    // End of the present iteration if nothing changes, or of the last one.
  Joules energy;  // Exact energy of its iterations since it was attached.
};

// How long a GPU has worked below its highest clock since it started, by the reason.
struct SlowTime {
  Seconds power{};    // The power limit lowered the clock.
  Seconds thermal{};  // The board was too hot.
  Seconds lock{};     // A program had locked the clock below the highest.
};

// The whole changing state of one simulated GPU and the laws by which it changes. Both forms of
// the simulated GPU are built on it: in process (SimulatedGpu) and in shared memory (SharedNode).
//
// Time is node time (seconds since the node started) and moves only through AdvanceTo(), in closed
// form from one event to the next: exact for any step size, and two copies that are advanced to
// the same time are equal. Trivially copyable, no pointers: it can live in shared memory.
// One owner.
class GpuCore {
 public:
  // `model` is one of GpuModels(). The board's gain, offset, sensor phases, PCI address and UUID
  // follow from the seed and the index.
  GpuCore(const GpuModel& model, std::uint64_t seed, unsigned index);

  const GpuModel& model() const;
  unsigned index() const { return index_; }
  std::string uuid() const;
  std::string pci_address() const;
  Seconds now() const { return now_; }

  // Where the parts of the state lie, to tell apart builds that cannot share a GPU.
  static std::vector<std::size_t> PartOffsets();

  // Never goes back: an earlier time is ignored.
  void AdvanceTo(Seconds time);

  // The truth, for scoring. No sensor sees it.
  Joules exact_energy() const;
  Watts exact_power() const;
  const BoardSensors& board_sensors() const { return board_; }

  // Sensor values at now(). kNotSupported where the part lacks the sensor, kUnavailable while a
  // certain kPowerUnavailable holds. Faults that concern calls (lost, slow, refused, and those that
  // hit only a share of the calls) are the caller's to apply: see fault() and DrawFault().
  Result<std::uint64_t> counter_millijoules() const;
  Result<Watts> power(PowerKind kind) const;
  Celsius temperature() const;
  Utilization utilization() const { return state_.utilization; }
  MemoryUse memory() const;
  Hertz clock(ClockDomain domain) const;
  ThrottleReasons throttle() const;
  SlowTime slow_time() const;
  std::vector<int> processes() const;  // With a load on this GPU.

  // Knobs. What was requested shows at once; the GPU obeys after the part's latency (20 ms,
  // jittered by half). Clocks can be locked only where CanLockClocks(): kNotSupported elsewhere.
  PowerLimit power_limit() const;
  Status SetPowerLimit(Watts limit);
  std::vector<Hertz> supported_clocks(ClockDomain domain) const;  // Sorted, lowest first.
  Status LockClock(ClockDomain domain, ClockRange range);
  Status ResetClock(ClockDomain domain);
  // The lock of the graphics clock that was requested last, if there is one.
  const std::optional<ClockRange>& requested_clock_lock() const {
    return graphics_lock_.requested();
  }
  // Lets the graphics clock rise to one of the supported clocks and no higher. Unlike a lock, every
  // part can do it, and the clock falls as usual when the GPU is idle.
  Status SetApplicationsClock(Hertz clock);
  Status ResetApplicationsClock();
  Persistence persistence() const { return persistence_; }
  void SetPersistence(Persistence mode) { persistence_ = mode; }
  void SetKnobLatency(Seconds mean) { knob_latency_ = mean; }

  // Sets the temperature of the air around the board; the model's own by default.
  void SetAmbient(Celsius ambient);

  // Loads. Several processes may share a GPU; each is known by the id that attaching returned.
  // kUnavailable when 8 are attached, kInvalidArgument when the spec means nothing.
  Result<std::uint32_t> AttachLoad(const LoadSpec& load);
  void DetachLoad(std::uint32_t id);
  // "Still alive" at now(). The load of a process (pid other than 0) ends one heartbeat timeout
  // after its last heartbeat, whatever became of the process: so all copies of a GPU let it end at
  // the same time. A process that was only stopped or slow goes on with its next heartbeat: a load
  // that has ended is attached again as `load`, from now on. The id that is valid from now on.
  Result<std::uint32_t> Heartbeat(std::uint32_t id, const LoadSpec& load);
  // How long one step of a workload takes under the present knobs and sharing.
  Result<Seconds> StepTime(std::uint32_t id) const;
  // Steps of a workload since it was attached; not whole in the midst of one.
  Result<double> StepsDone(std::uint32_t id) const;
  // When a load ends by itself if nothing changes, in node time; infinite if it does not. kNotFound
  // once it has.
  Result<Seconds> PredictEnd(std::uint32_t id) const;

  // Iterations of an inference engine (a load with engine_memory). One begins now, in place of the
  // present one if there is one, and counts as a heartbeat. kNotFound without such an engine.
  Status BeginIteration(std::uint32_t id, const IterationWork& work);
  // The present iteration ends no earlier than `time`: a GPU that is ahead of its group spins.
  Status SpinUntil(std::uint32_t id, Seconds time);
  Result<EngineState> Engine(std::uint32_t id) const;
  // Like AdvanceTo(), but stops as soon as the engine rests.
  void AdvanceWhileIterating(std::uint32_t id, Seconds time);

  // kInvalidArgument when the fault means nothing, kUnavailable when the schedule is full.
  Status InjectFault(const Fault& fault);
  void ClearFaults();
  // The fault of that kind if it holds now.
  std::optional<Fault> fault(FaultKind kind) const { return faults_.Active(kind, now_); }
  // The same, and decides by the fault's probability whether it hits this call.
  std::optional<Fault> DrawFault(FaultKind kind);

 private:
  // As where nvidia-persistenced runs.
  static constexpr Persistence kPersistenceAtStart = Persistence::kOn;

  void ApplyEvents();  // Everything that is due at now().
  void ReloadDriver();
  void ChangeRegime();  // After a change of loads, knobs, cooling or surroundings.
  void EndRegime();     // Counts energy and steps of the present one up to now().
  void BeginRegime(Celsius temperature, double step_position);
  void ScheduleNextEvent();
  void AddSlowTime(SlowTime& sum) const;  // Adds that of the present regime.
  void RequestLock(const std::optional<ClockRange>& range);
  void UpdateCounter(CounterRegister& counter) const;
  Status CheckLockable(ClockDomain domain) const;
  Watts PhysicalLimit() const;
  Joules EnergyBetween(Seconds begin, Seconds end) const;
  Seconds KnobArrival();
  Result<const Load*> FindTraining(std::uint32_t id) const;
  Result<const Load*> FindEngine(std::uint32_t id) const;

  std::uint32_t model_index_;
  std::uint32_t index_;
  std::uint64_t seed_;
  Random knob_random_;
  Random fault_random_;
  BoardSensors board_;

  Seconds now_{};
  Seconds next_event_{};
  Seconds cooling_event_{};  // When the GPU gets too hot, or cool enough again.

  Celsius ambient_;
  Cooling cooling_ = Cooling::kEnough;
  Persistence persistence_ = kPersistenceAtStart;
  Seconds knob_latency_{0.020};
  Delayed<Watts> limit_;
  Delayed<std::optional<ClockRange>> graphics_lock_{std::nullopt};

  LoadTable loads_;
  FaultSchedule faults_;

  OperatingState state_{};
  Regime regime_;
  std::uint32_t lead_ = 0;   // The workload whose steps shape the power; 0 if there is none.
  EnergySum energy_;         // Up to the start of the regime.
  PowerHistory history_;     // Holds the regimes before the present one.
  SlowTime slow_time_;       // Up to the start of the regime.
  ThrottleReasons slow_by_;  // During the regime.
  CounterRegister counter_;
};

static_assert(std::is_trivially_copyable_v<GpuCore>);
static_assert(sizeof(GpuCore) <= 8192, "copied out of shared memory on every read");

}  // namespace zeus::sim
