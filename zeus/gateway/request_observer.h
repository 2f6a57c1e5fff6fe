#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "zeus/base/clock.h"
#include "zeus/base/units.h"
#include "zeus/monitor/inference/attribution.h"

namespace zeus::gateway {

// A step in the life of a metered request, as the gateway sees it.
struct RequestEvent {
  enum class Kind : std::uint8_t {
    kArrived,  // It was sent to the upstream; `tokens` estimates those of its prompt.
    kTokens,   // So many tokens of one of its sequences came.
    kEnded,    // `tokens` are those of its prompt that were worked on; 0: not known.
  };
  Kind kind{};
  std::size_t upstream = 0;
  InferenceRequestId id = 0;
  TimePoint time{};
  double tokens = 0;
  std::string model{};  // With kArrived only.
};

// Hears of every metered request, on the proxy's thread: it must neither block nor throw. Tokens of
// responses that are not streamed are not reported, because they all come at the end.
class RequestObserver {
 public:
  virtual ~RequestObserver() = default;
  virtual void OnRequest(RequestEvent event) = 0;
  // The clock to which the observer has locked the GPUs of the upstream; nullopt when it has not.
  // The law of an engine's energy depends on it.
  virtual std::optional<Hertz> LockedClock(std::size_t upstream) const = 0;
};

}  // namespace zeus::gateway
