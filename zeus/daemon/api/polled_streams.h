#pragma once

#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>

#include "zeus/base/clock.h"
#include "zeus/base/ticker.h"
#include "zeus/http/message.h"
#include "zeus/http/pushed_response.h"

namespace zeus::daemon {

// Server-sent events whose text is made for each client when it is due, as the reference's streams
// of power. A client that does not read gets the newest values later, and costs the others nothing.
// Thread-safe; the clock must outlive it, and it must outlive the HTTP server.
class PolledStreams {
 public:
  static constexpr std::size_t kMostStreams = 1024;
  static constexpr Seconds kPeriod{0.05};

  // Returns the events since its last call, or nothing. Called by one thread at a time; must not
  // block.
  using Source = std::function<std::string(TimePoint now)>;

  explicit PolledStreams(const Clock& clock);
  ~PolledStreams();  // Ends all streams.
  PolledStreams(const PolledStreams&) = delete;
  PolledStreams& operator=(const PolledStreams&) = delete;

  // The answer is 503 when there are too many streams.
  http::Answer Follow(Source source);
  void EndAll();
  std::size_t size() const;

 private:
  TimePoint Step();

  const Clock& clock_;
  mutable std::mutex mutex_;
  std::list<std::shared_ptr<http::PushedResponse>> streams_{};  // Guarded by mutex_.
  std::unique_ptr<Ticker> ticker_;
};

}  // namespace zeus::daemon
