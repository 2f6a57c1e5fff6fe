#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "zeus/base/units.h"

namespace zeus::sim {

enum class FaultKind : std::uint8_t {
  kLost,               // Every call fails: the GPU fell off the bus.
  kDriverReload,       // The counter restarts near zero, knobs return to defaults. Momentary.
  kCounterFrozen,      // The energy counter stands still.
  kPowerUnavailable,   // Power reads as not available.
  kNoPermission,       // Setters are refused.
  kSetterUnsupported,  // Setters are not supported.
  kOutOfBandCap,       // A stricter power limit from outside (BMC): enforced < requested.
  kSlowCall,           // Every driver call takes longer.
  kClockReset,         // Somebody else resets the locked clocks. Momentary.
  kMigEnabled,         // The GPU is partitioned.
};

struct Fault {
  FaultKind kind;
  Watts cap{};               // kOutOfBandCap
  Seconds delay{};           // kSlowCall
  Seconds at{};              // Node time from which it holds; in the past means at once.
  double probability = 1.0;  // Share of calls that are hit, for faults that concern calls.
};

// Faults that hold or are yet to come. Of one kind the one with the latest beginning holds.
// Trivially copyable. One owner.
class FaultSchedule {
 public:
  // A full schedule (16) forgets the fault with the earliest beginning.
  void Add(const Fault& fault);
  void Clear() { size_ = 0; }

  std::optional<Fault> Active(FaultKind kind, Seconds now) const;

  // Removes one fault of that (momentary) kind that is due; whether there was one.
  bool TakeDue(FaultKind kind, Seconds now);

  // The next beginning after `now`; infinity if there is none.
  Seconds NextAfter(Seconds now) const;

 private:
  void Remove(std::size_t i);

  std::array<Fault, 16> faults_{};
  std::size_t size_ = 0;
};

}  // namespace zeus::sim
