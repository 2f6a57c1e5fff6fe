#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>

#include "zeus/base/clock.h"
#include "zeus/base/json_fwd.h"
#include "zeus/base/ticker.h"
#include "zeus/http/message.h"
#include "zeus/http/pushed_response.h"

namespace zeus::daemon {

// Something that happened, for those who follow.
struct Event {
  enum class Kind { kLease, kKnob, kNotice };
  Kind kind = Kind::kNotice;
  std::string device{};   // Empty: none in particular.
  std::string subject{};  // The owner of a lease; others do not see it. Empty: for everybody.
  std::string data{};     // JSON in one line.
};

// Clients that follow events and readings over server-sent events. A client that does not read
// costs the others nothing: its readings are left out, at most 256 KiB of events are kept for it,
// and what was lost is counted and told. Thread-safe; the clock must outlive it, and it must
// outlive the HTTP server.
class EventStreams {
 public:
  static constexpr std::size_t kMostStreams = 1024;
  static constexpr std::size_t kMostWaiting = std::size_t{256} << 10;  // Bytes for one client.
  static constexpr std::size_t kKept = 1024;  // Events for clients that come back.

  struct Request {
    std::function<bool(const Event&)> wants{};  // Null: no events.
    // Called each `period` on the thread of the streams: the text of readings, or nothing.
    std::function<std::string(TimePoint now)> readings{};
    Seconds period{1};
    std::string last_event_id{};  // Events after it are sent first, as far as they are kept.
  };

  explicit EventStreams(const Clock& clock);
  ~EventStreams();  // Ends all streams.
  EventStreams(const EventStreams&) = delete;
  EventStreams& operator=(const EventStreams&) = delete;

  // The answer is 503 when there are too many streams.
  http::Answer Follow(Request request);
  void Publish(const Event& event);
  // Ends all streams, before the server shuts down.
  void EndAll();

  std::size_t size() const;
  std::uint64_t dropped() const { return dropped_; }

 private:
  struct Stream {
    Request request;
    std::shared_ptr<http::PushedResponse> response{};
    TimePoint due{};            // Of the next readings.
    TimePoint sent{};           // The last time that anything was.
    std::uint64_t dropped = 0;  // Since the client was last told.
  };
  struct Numbered {
    std::uint64_t number;
    Event event;
  };

  TimePoint Step();
  void Send(Stream& stream, const std::string& text, TimePoint now);  // Needs mutex_.
  static std::string TextOf(const Numbered& event);

  const Clock& clock_;
  mutable std::mutex mutex_;
  std::list<std::shared_ptr<Stream>> streams_{};  // Guarded by mutex_, as are the next two.
  std::deque<Numbered> kept_{};
  std::uint64_t number_ = 0;
  std::atomic<std::uint64_t> dropped_ = 0;
  std::unique_ptr<Ticker> ticker_;
};

}  // namespace zeus::daemon
