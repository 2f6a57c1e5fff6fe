#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/http/pushed_response.h"

// Server-sent events for many clients (GET /v1/stream). An event is encoded once, and clients share
// its text. A client's queue lives here and not in the server: the server pulls from it whenever
// the client has taken everything before, so a client that reads slowly costs a bounded queue, and
// its readings become fewer instead of older. Readings are one event for all devices; clients that
// follow the same devices with the same period get the same bytes at the same time, from the thread
// of the sockets alone.
namespace zeus::live {

enum class EventKind { kReading, kLease, kKnob, kNotice };
std::string_view Name(EventKind kind);  // "reading", "lease", "knob", "notice"
Result<EventKind> ParseEventKind(std::string_view name);

// A change; readings are published by themselves.
struct Event {
  EventKind kind = EventKind::kNotice;
  std::string device{};   // The device that it is about; empty: about all of them.
  std::string subject{};  // Only this caller and administrators see it; empty: everybody.
  std::string data{};     // A JSON object in one line.
};

// The events that one client asked for and may see.
struct EventFilter {
  std::set<std::string> devices{};  // Empty: all.
  std::set<EventKind> kinds{};      // Empty: all.
  Seconds period{1};                // The time between two readings; positive.
  std::string subject{};            // The caller.
  bool sees_all = false;            // The caller is an administrator.
};

// Returns the readings of devices (empty: of all) as a JSON object in one line, or "" when there is
// nothing to tell about them.
using ReadingsOf = std::function<std::string(const std::set<std::string>& devices)>;

class EventQueue;

// Thread-safe. Responses that it made may outlive it, but not the clock.
class EventStreams {
 public:
  struct Limits {
    std::size_t streams = 1024;
    std::size_t events = 64;                      // In the queue of one client.
    std::size_t bytes = std::size_t{256} * 1024;  // Likewise.
    std::size_t replayed = 1024;                  // Events kept for clients that come back.
    Seconds ping{15};                             // A silent stream carries a comment this often.
  };
  struct Counts {
    std::size_t streams = 0;
    std::uint64_t dropped = 0;  // Events that clients did not get because they read too slowly.
  };

  // `run` names this run of the daemon in the ids of events, so that the id of an earlier run
  // replays nothing: letters and digits.
  EventStreams(const Clock& clock, std::string run, const Limits& limits);
  EventStreams(const Clock& clock, std::string run) : EventStreams(clock, std::move(run), {}) {}
  ~EventStreams();  // As EndAll().
  EventStreams(const EventStreams&) = delete;
  EventStreams& operator=(const EventStreams&) = delete;

  // A response for Answer::pushed: events after `last_event_id` (the header of that name, from
  // outside), the `present` readings (none where it is empty), then what is published. kUnavailable
  // when there are too many streams.
  Result<std::shared_ptr<http::PushedResponse>> Open(const EventFilter& filter,
                                                     std::string_view last_event_id = {},
                                                     std::string_view present = {});

  // Never waits for a client. Events get an id and are kept for replay.
  void Publish(const Event& event);

  // Sends readings to the clients whose period has passed, and comments to silent ones. Periods are
  // multiples since the clock's origin, so that clients with the same one share a moment. Never
  // waits for a client; `readings_of` is called once for each set of devices, and must not call
  // back. Returns when to come again: TimePoint::max() while nobody follows.
  TimePoint Step(const ReadingsOf& readings_of);

  // Ends all streams, and refuses new ones: the server is about to stop.
  void EndAll();

  Counts counts() const;
  // Whether a client follows readings. It costs nothing, and may be late to know that the last one
  // has left.
  bool readings_wanted() const { return readings_wanted_; }

 private:
  struct Encoded;
  friend class EventQueue;

  using Queues = std::vector<std::shared_ptr<EventQueue>>;
  // Clients of one server. Null: it is not known yet.
  struct Seats {
    std::shared_ptr<http::Courier> courier{};
    std::shared_ptr<const Queues> clients{};
  };
  // The clients that get the same readings.
  struct Audience {
    TimePoint due{};
    Queues clients{};
    std::vector<Seats> seats{};    // The clients, by server.
    bool seated = false;           // `seats` are those of all clients, and all known.
    std::uint64_t departures = 0;  // departures_ when clients that left were looked for last,
    TimePoint looked_at{};         // and when that was.
  };
  struct AudienceKey {
    Seconds period{};
    std::set<std::string> devices{};
    auto operator<=>(const AudienceKey&) const = default;
  };

  std::shared_ptr<const Encoded> Encode(const Event& event, std::uint64_t number) const;
  // The following need mutex_.
  void Replay(EventQueue& queue, std::string_view last_event_id) const;
  void Prune();
  TimePoint SendReadings(TimePoint now, const ReadingsOf& readings_of);
  // Null where there is nothing to tell.
  std::shared_ptr<const Encoded> MakeReadings(const std::set<std::string>& devices,
                                              const ReadingsOf& readings_of) const;
  static void SendTo(Audience& audience, const std::shared_ptr<const Encoded>& text, TimePoint now);
  static void Offer(EventQueue& queue, const std::shared_ptr<const Encoded>& text);
  static void Seat(Audience& audience);
  void ForgetThoseWhoLeft(Audience& audience, TimePoint now) const;
  TimePoint SendComments(TimePoint now);

  const Clock& clock_;
  const std::string run_;
  const Limits limits_;
  // Clients that have left; they may outlive this object.
  const std::shared_ptr<std::atomic<std::uint64_t>> departures_ =
      std::make_shared<std::atomic<std::uint64_t>>(0);
  std::atomic<bool> readings_wanted_ = false;
  mutable std::mutex mutex_;
  // Guarded by mutex_, to the end of the class.
  std::vector<std::shared_ptr<EventQueue>> queues_{};
  std::map<AudienceKey, Audience> audiences_{};        // Clients that want readings.
  TimePoint next_look_ = TimePoint::max();             // For silent clients.
  std::deque<std::shared_ptr<const Encoded>> kept_{};  // Oldest first.
  std::uint64_t last_number_ = 0;                      // Events with an id count up.
  std::uint64_t dropped_before_ = 0;                   // By clients that have left.
  bool ended_ = false;
};

}  // namespace zeus::live
