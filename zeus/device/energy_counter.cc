#include "zeus/device/energy_counter.h"

namespace zeus {

EnergyCounter::Total EnergyCounter::Advance(std::uint64_t raw) {
  total_.ticks += Growth(raw);
  last_ = raw;
  restarted_ = false;
  return total_;
}

void EnergyCounter::BeginEpoch() { restarted_ = last_.has_value(); }

std::uint64_t EnergyCounter::Growth(std::uint64_t raw) {
  if (!last_) return raw;
  if (!restarted_ && raw >= *last_) return raw - *last_;
  if (!restarted_ && modulus_) return *modulus_ - *last_ + raw;
  ++total_.epoch;
  return raw;
}

}  // namespace zeus
