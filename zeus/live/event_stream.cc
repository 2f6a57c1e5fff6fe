#include "zeus/live/event_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <utility>

#include "zeus/base/text.h"

namespace zeus::live {
namespace {

constexpr std::string_view kPing = ":\n\n";
// How often Step() looks for silent clients at most.
constexpr Seconds kShortestLook{0.5};

// The next multiple of the period.
TimePoint NextDue(TimePoint now, Seconds period) {
  const double passed = std::floor(now.time_since_epoch() / period);
  return TimePoint((passed + 1) * period);
}

}  // namespace

std::string_view Name(EventKind kind) {
  switch (kind) {
    case EventKind::kReading:
      return "reading";
    case EventKind::kLease:
      return "lease";
    case EventKind::kKnob:
      return "knob";
    case EventKind::kNotice:
      return "notice";
  }
  return "notice";
}

Result<EventKind> ParseEventKind(std::string_view name) {
  for (const EventKind kind :
       {EventKind::kReading, EventKind::kLease, EventKind::kKnob, EventKind::kNotice})
    if (Name(kind) == name) return kind;
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("{} is no kind of event: there are reading, lease, knob and notice",
                           Quote(name))};
}

// An event as it is sent.
struct EventStreams::Encoded {
  EventKind kind;
  std::string device;
  std::string subject;
  std::uint64_t number;  // 0: no id.
  std::string text;
  std::size_t inside;  // Behind the brace with which the data begins.
};

// The events that one client has not taken yet. Thread-safe.
class EventQueue {
 public:
  using Shared = std::shared_ptr<const EventStreams::Encoded>;

  EventQueue(EventFilter filter, const EventStreams::Limits& limits, TimePoint now)
      : filter_(std::move(filter)), limits_(limits), last_sent_(now) {}

  bool Wants(EventKind kind) const { return filter_.kinds.empty() || filter_.kinds.contains(kind); }
  bool Wants(const EventStreams::Encoded& event) const {
    if (!Wants(event.kind)) return false;
    if (!event.device.empty() && !filter_.devices.empty() &&
        !filter_.devices.contains(event.device))
      return false;
    return event.subject.empty() || filter_.sees_all || event.subject == filter_.subject;
  }

  void Add(const Shared& event) {
    const std::lock_guard lock(mutex_);
    while (!events_.empty() && IsFullWith(*event)) {
      bytes_ -= events_.front()->text.size();
      CountDropped();
      events_.pop_front();
    }
    bytes_ += event->text.size();
    events_.push_back(event);
  }

  // Takes the place of readings that the client has not taken.
  void SetReadings(const Shared& event) {
    const std::lock_guard lock(mutex_);
    if (readings_) CountDropped();
    readings_ = event;
  }

  // Whether readings may be sent past the queue: nothing waits in it, and they count as sent.
  bool MayPass(TimePoint now) {
    const std::lock_guard lock(mutex_);
    if (readings_ || !events_.empty() || unreported_ > 0 || ping_) return false;
    last_sent_ = now;
    return true;
  }

  // When a silent stream needs a comment next; the comment is ready if that is now.
  TimePoint LookForSilence(TimePoint now) {
    const std::lock_guard lock(mutex_);
    if (now - last_sent_ < limits_.ping) return last_sent_ + limits_.ping;
    ping_ = true;
    last_sent_ = now;
    return now;
  }

  // Called by the server when the client has taken everything before.
  http::PushedResponse::SharedBytes Pull(TimePoint now) {
    const std::lock_guard lock(mutex_);
    const bool ping = std::exchange(ping_, false);
    const Shared readings = std::exchange(readings_, nullptr);
    if (readings || !events_.empty()) last_sent_ = now;
    if (events_.empty() && unreported_ == 0) {
      if (readings) return {readings, &readings->text};
      return ping ? std::make_shared<const std::string>(kPing) : nullptr;
    }
    std::string text;
    for (const Shared& event : events_) AppendTo(text, *event);
    if (readings) AppendTo(text, *readings);
    events_.clear();
    bytes_ = 0;
    return std::make_shared<const std::string>(std::move(text));
  }

  void Leave() { left_ = true; }
  bool has_left() const { return left_ || response.expired(); }
  std::uint64_t dropped() const {
    const std::lock_guard lock(mutex_);
    return dropped_;
  }

  std::weak_ptr<http::PushedResponse> response{};  // Set once, before the queue is shared.

 private:
  // The following need mutex_.

  // The first event after a loss tells how many there were.
  void AppendTo(std::string& text, const EventStreams::Encoded& event) {
    if (unreported_ == 0) {
      text += event.text;
      return;
    }
    text.append(event.text, 0, event.inside);
    fmt::format_to(std::back_inserter(text), "\"dropped\": {}{}", std::exchange(unreported_, 0),
                   event.text[event.inside] == '}' ? "" : ", ");
    text.append(event.text, event.inside);
  }

  bool IsFullWith(const EventStreams::Encoded& event) const {
    return events_.size() >= limits_.events || bytes_ + event.text.size() > limits_.bytes;
  }

  void CountDropped() {
    ++dropped_;
    ++unreported_;
  }

  const EventFilter filter_;
  const EventStreams::Limits limits_;
  std::atomic<bool> left_ = false;
  mutable std::mutex mutex_;
  // Guarded by mutex_, to the end of the class.
  std::deque<Shared> events_{};  // Changes, oldest first.
  std::size_t bytes_ = 0;        // Size of these.
  Shared readings_{};            // The newest.
  std::uint64_t dropped_ = 0;
  std::uint64_t unreported_ = 0;  // Dropped since the client was told.
  bool ping_ = false;
  TimePoint last_sent_{};
};

EventStreams::EventStreams(const Clock& clock, std::string run, const Limits& limits)
    : clock_(clock), run_(std::move(run)), limits_(limits) {}

EventStreams::~EventStreams() { EndAll(); }

std::shared_ptr<const EventStreams::Encoded> EventStreams::Encode(const Event& event,
                                                                  std::uint64_t number) const {
  Encoded encoded{.kind = event.kind,
                  .device = event.device,
                  .subject = event.subject,
                  .number = number,
                  .text = {},
                  .inside = 0};
  if (number > 0) encoded.text = fmt::format("id: {}-{}\n", run_, number);
  encoded.text += fmt::format("event: {}\ndata: ", Name(event.kind));
  encoded.inside = encoded.text.size() + 1;
  const std::size_t start = encoded.text.size();
  encoded.text += event.data.starts_with('{') && event.data.size() >= 2 ? event.data : "{}";
  // A line feed would end the data.
  std::replace(encoded.text.begin() + static_cast<std::ptrdiff_t>(start), encoded.text.end(), '\n',
               ' ');
  encoded.text += "\n\n";
  return std::make_shared<const Encoded>(std::move(encoded));
}

Result<std::shared_ptr<http::PushedResponse>> EventStreams::Open(const EventFilter& filter,
                                                                 std::string_view last_event_id,
                                                                 std::string_view present) {
  auto queue = std::make_shared<EventQueue>(filter, limits_, clock_.Now());
  const Clock* clock = &clock_;
  auto response = std::make_shared<http::PushedResponse>(
      [queue, departures = departures_] {
        queue->Leave();
        ++*departures;
      },
      [queue, clock] { return queue->Pull(clock->Now()); });
  queue->response = response;
  {
    const std::lock_guard lock(mutex_);
    Prune();
    if (ended_ || queues_.size() >= limits_.streams)
      return Error{ErrorCode::kUnavailable,
                   ended_
                       ? "the server is stopping"
                       : fmt::format("there are {} streams already: close some", queues_.size())};
    queues_.push_back(queue);
    next_look_ = std::min(next_look_, clock_.Now() + limits_.ping);
    Replay(*queue, last_event_id);
    if (queue->Wants(EventKind::kReading)) {
      if (!present.empty())
        queue->SetReadings(Encode({.kind = EventKind::kReading, .data = std::string(present)}, 0));
      Audience& audience = audiences_[{.period = filter.period, .devices = filter.devices}];
      if (audience.clients.empty()) audience.due = NextDue(clock_.Now(), filter.period);
      audience.clients.push_back(queue);
      audience.seated = false;
      readings_wanted_ = true;
    }
  }
  response->Start({.body = std::string(kPing),
                   .content_type = "text/event-stream",
                   .headers = {{"X-Accel-Buffering", "no"}}});
  response->Offer();
  return response;
}

void EventStreams::Replay(EventQueue& queue, std::string_view last_event_id) const {
  if (!last_event_id.starts_with(run_ + "-")) return;
  const auto number = ParseUnsigned(last_event_id.substr(run_.size() + 1));
  if (!number.ok() || number.value() > last_number_) return;
  for (const auto& event : kept_)
    if (event->number > number.value() && queue.Wants(*event)) queue.Add(event);
}

void EventStreams::Publish(const Event& event) {
  const std::lock_guard lock(mutex_);
  const auto encoded = Encode(event, ++last_number_);
  kept_.push_back(encoded);
  if (kept_.size() > limits_.replayed) kept_.pop_front();
  for (const auto& queue : queues_) {
    if (!queue->Wants(*encoded)) continue;
    queue->Add(encoded);
    if (const auto response = queue->response.lock()) response->Offer();
  }
}

TimePoint EventStreams::Step(const ReadingsOf& readings_of) {
  const TimePoint now = clock_.Now();
  const std::lock_guard lock(mutex_);
  const TimePoint readings = SendReadings(now, readings_of);
  return std::min(readings, SendComments(now));
}

TimePoint EventStreams::SendReadings(TimePoint now, const ReadingsOf& readings_of) {
  TimePoint next = TimePoint::max();
  std::map<std::set<std::string>, std::shared_ptr<const Encoded>> texts;
  for (auto it = audiences_.begin(); it != audiences_.end();) {
    auto& [key, audience] = *it;
    if (audience.due <= now) {
      ForgetThoseWhoLeft(audience, now);
      audience.due = NextDue(now, key.period);
      std::shared_ptr<const Encoded>& text = texts[key.devices];
      if (!text && !audience.clients.empty()) text = MakeReadings(key.devices, readings_of);
      if (text) SendTo(audience, text, now);
    }
    if (audience.clients.empty()) {
      it = audiences_.erase(it);
      continue;
    }
    next = std::min(next, audience.due);
    ++it;
  }
  readings_wanted_ = !audiences_.empty();
  return next;
}

std::shared_ptr<const EventStreams::Encoded> EventStreams::MakeReadings(
    const std::set<std::string>& devices, const ReadingsOf& readings_of) const {
  std::string data = readings_of(devices);
  if (data.empty()) return nullptr;
  return Encode({.kind = EventKind::kReading, .data = std::move(data)}, 0);
}

void EventStreams::SendTo(Audience& audience, const std::shared_ptr<const Encoded>& text,
                          TimePoint now) {
  if (!audience.seated) Seat(audience);
  for (const Seats& seats : audience.seats) {
    if (seats.courier == nullptr) {
      for (const auto& queue : *seats.clients) Offer(*queue, text);
      continue;
    }
    seats.courier->Post([clients = seats.clients, text, now] {
      const http::PushedResponse::SharedBytes bytes(text, &text->text);
      for (const auto& queue : *clients) {
        const auto response = queue->response.lock();
        const bool sent = response && queue->MayPass(now) && response->SendNow(bytes);
        if (!sent) Offer(*queue, text);
      }
    });
  }
}

void EventStreams::Offer(EventQueue& queue, const std::shared_ptr<const Encoded>& text) {
  const auto response = queue.response.lock();
  if (!response) return;
  queue.SetReadings(text);
  response->Offer();
}

// To look at a thousand clients takes longer than to know that none has left.
void EventStreams::ForgetThoseWhoLeft(Audience& audience, TimePoint now) const {
  constexpr Seconds kBetweenLooks{1};
  const std::uint64_t departures = *departures_;
  if (audience.departures == departures && now - audience.looked_at < kBetweenLooks) return;
  audience.departures = departures;
  audience.looked_at = now;
  if (std::erase_if(audience.clients, [](const auto& queue) { return queue->has_left(); }) > 0)
    audience.seated = false;
}

void EventStreams::Seat(Audience& audience) {
  std::map<std::shared_ptr<http::Courier>, Queues> by_server;
  for (const auto& queue : audience.clients) {
    const auto response = queue->response.lock();
    by_server[response ? response->courier() : nullptr].push_back(queue);
  }
  audience.seated = !by_server.contains(nullptr);
  audience.seats.clear();
  for (auto& [courier, queues] : by_server)
    audience.seats.push_back(
        {.courier = courier, .clients = std::make_shared<const Queues>(std::move(queues))});
}

TimePoint EventStreams::SendComments(TimePoint now) {
  if (now < next_look_) return next_look_;
  Prune();
  TimePoint next = TimePoint::max();
  for (const auto& queue : queues_) {
    const TimePoint silent = queue->LookForSilence(now);
    next = std::min(next, silent == now ? now + limits_.ping : silent);
    if (silent != now) continue;
    if (const auto response = queue->response.lock()) response->Offer();
  }
  next_look_ = std::max(next, now + kShortestLook);
  return next_look_;
}

void EventStreams::EndAll() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  for (const auto& queue : queues_) {
    queue->Leave();
    if (const auto response = queue->response.lock()) response->End();
  }
}

void EventStreams::Prune() {
  std::erase_if(queues_, [this](const auto& queue) {
    const bool left = queue->has_left();
    if (left) dropped_before_ += queue->dropped();
    return left;
  });
}

EventStreams::Counts EventStreams::counts() const {
  const std::lock_guard lock(mutex_);
  Counts counts{.dropped = dropped_before_};
  for (const auto& queue : queues_) {
    if (!queue->has_left()) ++counts.streams;
    counts.dropped += queue->dropped();
  }
  return counts;
}

}  // namespace zeus::live
