#include "zeus/device/amd/smi.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "zeus/device/privilege.h"

namespace zeus::amd {

Error SmiCaller::ErrorFor(std::uint32_t status, const char* name) const {
  for (const SmiStatus& row : statuses) {
    if (row.status != status) continue;
    const bool refused = row.code == ErrorCode::kPermissionDenied;
    return {row.code, fmt::format("{}: {}{}{} (status {})", name, row.meaning, refused ? "; " : "",
                                  refused ? RefusalAdvice() : "", status)};
  }
  return {ErrorCode::kInternal, fmt::format("{}: unknown status {}", name, status)};
}

Error SmiCaller::Missing(const char* name) const {
  return {ErrorCode::kNotSupported, fmt::format("this {} has no {}", library, name)};
}

Result<CounterSample> SampleFromSmi(std::uint64_t ticks, float microjoules_per_tick) {
  constexpr float kAnnounced = 15.3F;
  constexpr float kTolerance = 0.05F;  // Also covers 15.259, said by a library that says it right.
  if (ticks == std::numeric_limits<std::uint64_t>::max())
    return Error{ErrorCode::kNotSupported, "the library has no energy counter for this board"};
  if (std::abs(microjoules_per_tick - kAnnounced) < kTolerance)
    return CounterSample{.ticks = ticks, .tick = kEnergyTick};
  if (!(microjoules_per_tick > 0.0F) || !std::isfinite(microjoules_per_tick)) {
    return Error{ErrorCode::kUnavailable,
                 fmt::format("the library says that a tick of the energy counter is {} uJ",
                             microjoules_per_tick)};
  }
  return CounterSample{.ticks = ticks,
                       .tick = Joules::FromMicro(static_cast<double>(microjoules_per_tick))};
}

double MicrowattsPerUnit(const RawCap& cap) {
  constexpr std::uint64_t kMostWatts = 100'000;
  return cap.max < kMostWatts ? 1e6 : 1.0;
}

PowerCap CapFromSmi(const RawCap& cap) {
  const auto watts = [scale = MicrowattsPerUnit(cap)](std::uint64_t units) {
    return Watts::FromMicro(static_cast<double>(units) * scale);
  };
  return {.range = {.min = watts(cap.min), .max = watts(cap.max)},
          .default_limit = watts(cap.default_limit),
          .current = watts(cap.current)};
}

}  // namespace zeus::amd
