#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "zeus/base/random.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/device/gpu.h"
#include "zeus/device/sim/gpu_model.h"

namespace zeus::sim {

enum class FaultKind : std::uint8_t {
  kLost,              // Every call fails: the GPU fell off the bus.
  kCounterReset,      // Driver reload: the energy counter restarts near zero. Momentary.
  kCounterFrozen,     // The energy counter stands still.
  kPowerUnavailable,  // Power reads as not available.
  kNoPermission,      // Setters are refused.
  kSetterUnsupported, // Setters are not supported.
  kOutOfBandCap,      // A stricter power limit from outside (BMC): enforced < requested.
  kSlowCall,          // Every driver call takes longer.
  kClockReset,        // Somebody else resets the locked clocks. Momentary.
  kMigEnabled,        // The GPU is partitioned.
};

struct Fault {
  FaultKind kind;
  Watts cap{};              // kOutOfBandCap
  Seconds delay{};          // kSlowCall
  Seconds at{};             // Node time from which it holds; in the past means at once.
  double probability = 1.0; // Share of calls that are hit, for faults that concern calls.
};

// What a process runs on a GPU.
struct LoadSpec {
  // Exactly one of the two: a plain power draw (before limits), or a workload of the catalogue.
  std::optional<Watts> demand;
  const struct Workload* workload = nullptr;
  unsigned batch_size = 0;

  int pid = 0;
  Seconds duration;  // From now on; infinite() for "until detached".
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
  // The board's gain, offset, sensor phase and UUID follow from the seed and the index.
  GpuCore(const GpuModel& model, std::uint64_t seed, unsigned index);

  const GpuModel& model() const;
  Seconds now() const;

  // Never goes back: an earlier time is ignored.
  void AdvanceTo(Seconds time);

  // The truth, for scoring. No sensor sees it.
  Joules exact_energy() const;
  Watts exact_power() const;

  // What sensors show at now(). kNotSupported where the part lacks the sensor. Faults that concern
  // calls (lost, slow, refused) are the caller's to apply: see fault().
  Result<std::uint64_t> counter_millijoules() const;
  Result<Watts> power(PowerKind kind) const;
  Celsius temperature() const;
  Utilization utilization() const;
  MemoryUse memory() const;
  Hertz clock(ClockDomain domain) const;
  ThrottleReasons throttle() const;
  std::vector<int> processes() const;  // With a load on this GPU.

  // Knobs. A change takes effect after the part's latency (20 ms, jittered).
  PowerLimit power_limit() const;
  Status SetPowerLimit(Watts limit);
  std::vector<Hertz> supported_clocks(ClockDomain domain) const;  // Ascending.
  Status LockClock(ClockDomain domain, ClockRange range);
  Status ResetClock(ClockDomain domain);
  Persistence persistence() const;
  void SetPersistence(Persistence mode);

  // Loads. Several processes may share a GPU; each is known by the id that attaching returned.
  Result<std::uint32_t> AttachLoad(const LoadSpec& load);
  void DetachLoad(std::uint32_t id);
  // "Still alive": when its process dies, a load ends at its last heartbeat.
  void Heartbeat(std::uint32_t id);
  // Ends the loads of dead processes. `alive` is asked about pids whose heartbeat is overdue.
  void ReapLoads(bool (*alive)(int pid));
  // How long one step of a workload takes under the present knobs and sharing.
  Result<Seconds> StepTime(std::uint32_t id) const;

  void InjectFault(const Fault& fault);
  void ClearFaults();
  // The fault of that kind if it holds now.
  std::optional<Fault> fault(FaultKind kind) const;

 private:
  // …
};

}  // namespace zeus::sim
