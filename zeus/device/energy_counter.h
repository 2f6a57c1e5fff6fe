#pragma once

#include <cstdint>
#include <optional>

namespace zeus {

// Turns readings of a raw hardware counter into a total that never decreases.
//
// Two kinds of counter go backwards for two different reasons:
//  - a narrow one wraps around (RAPL): pass its modulus, and nothing is lost as long as it is read
//    at least once per turn;
//  - a wide one starts again when the driver is reloaded (NVML, amdgpu): a new epoch begins, and
//    what was used between the last reading and the restart is not known.
//
// Not thread-safe on purpose: two threads that read the hardware in one order and call Advance()
// in the other would look like a wrap-around. Hold one lock around both.
class EnergyCounter {
 public:
  struct Total {
    std::uint64_t ticks;
    std::uint64_t epoch;
  };

  // A counter that restarts.
  EnergyCounter() = default;

  // A counter that counts modulo `modulus` (largest value + 1).
  explicit EnergyCounter(std::uint64_t modulus) : modulus_(modulus) {}

  Total Advance(std::uint64_t raw);

  // The next reading starts a new epoch whatever it says: the device was gone meanwhile.
  void BeginEpoch();

 private:
  std::uint64_t Growth(std::uint64_t raw);

  const std::optional<std::uint64_t> modulus_;
  std::optional<std::uint64_t> last_;
  bool restarted_ = false;
  Total total_{.ticks = 0, .epoch = 0};
};

}  // namespace zeus
