#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "zeus/base/result.h"
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
  kClockReset,         // Another program resets the locked clocks. Momentary.
  kMigEnabled,         // The GPU is partitioned.
};

struct Fault {
  FaultKind kind;
  Watts cap{};               // Used by kOutOfBandCap only.
  Seconds delay{};           // Used by kSlowCall only.
  Seconds at{};              // Node time from which it holds; in the past means at once.
  double probability = 1.0;  // Share of calls that are hit, for faults that concern calls.
};

inline constexpr Watts kMinCap{1};
inline constexpr Watts kMaxCap{100'000};
inline constexpr Seconds kMaxDelay{60};

// Whether the fault concerns calls, so that a probability means something.
bool HitsCalls(FaultKind kind);

// kInvalidArgument when a number of the fault is out of its range or the probability would be
// ignored.
Status CheckFault(const Fault& fault);

// "lost", "oob-cap:200W", "slow:50ms": as people name a fault, from now on and certain.
// kInvalidArgument lists what there is.
Result<Fault> ParseFault(std::string_view text);

// All of them, with examples of their values: "lost, reset, …".
std::string KnownFaults();

// Faults that hold or are yet to come. Of one kind the one with the latest beginning holds.
// Trivially copyable. One owner.
class FaultSchedule {
 public:
  static constexpr std::size_t kMaxFaults = 16;

  // Whether there was room.
  bool Add(const Fault& fault);
  void Clear() { size_ = 0; }

  std::optional<Fault> Active(FaultKind kind, Seconds now) const;

  // Removes one fault of that (momentary) kind that is due; whether there was one.
  bool TakeDue(FaultKind kind, Seconds now);

  // The next beginning after `now`; infinity if there is none.
  Seconds NextAfter(Seconds now) const;

 private:
  void Remove(std::size_t i);

  std::array<Fault, kMaxFaults> faults_{};
  std::size_t size_ = 0;
};

}  // namespace zeus::sim
