#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "zeus/base/result.h"
#include "zeus/base/units.h"

namespace zeus {

// The latencies that users of an inference server were promised. TTFT is the time from the arrival
// of a request to its first token, TPOT the mean time per output token after the first.
struct ServiceTargets {
  std::optional<Seconds> ttft{};
  std::optional<Seconds> tpot{};
  // Shares of requests, between 0 and 1, that must keep the target.
  double ttft_percentile = 0.9;
  double tpot_percentile = 0.9;

  friend bool operator==(const ServiceTargets&, const ServiceTargets&) = default;
};

// Reads "ttft=1s,tpot=50ms,percentile=90". Times need a unit (s, ms or us); at least one of them
// must be given. `percentile` holds for both, `ttft-percentile` and `tpot-percentile` for one.
// kInvalidArgument names the part that is wrong and what is expected.
Result<ServiceTargets> ParseServiceTargets(std::string_view text);

// "TTFT 1 s and TPOT 50 ms for 90 % of requests"
std::string ToText(const ServiceTargets& targets);

}  // namespace zeus
