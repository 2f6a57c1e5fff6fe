#include "zeus/daemon/event_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "zeus/base/text.h"

namespace zeus::daemon {
namespace {

constexpr std::string_view kPing = ":\n\n";
// How often Step() looks at clients while there are some: readings that wait for their period are
// usually sent together with the next event.
constexpr Seconds kStep{0.5};

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

  EventQueue(EventFilter filter, const EventStreams::Limits& limits)
      : filter_(std::move(filter)), limits_(limits) {}

  bool Wants(const EventStreams::Encoded& event) const {
    if (!filter_.kinds.empty() && !filter_.kinds.contains(event.kind)) return false;
    if (!event.device.empty() && !filter_.devices.empty() &&
        !filter_.devices.contains(event.device))
      return false;
    return event.subject.empty() || filter_.sees_all || event.subject == filter_.subject;
  }

  // Returns whether there is something to send.
  bool Add(const Shared& event, TimePoint now) {
    const std::lock_guard lock(mutex_);
    if (event->kind == EventKind::kReading && filter_.period > Seconds(0)) {
      early_.insert_or_assign(event->device, event);
      return TakeDue(now);
    }
    Enqueue(event);
    return true;
  }

  // Returns whether readings have become due, or a comment.
  bool Step(TimePoint now) {
    const std::lock_guard lock(mutex_);
    const bool due = TakeDue(now);
    if (now - last_sent_ < limits_.ping) return due;
    ping_ = true;
    last_sent_ = now;
    return true;
  }

  // Called by the server when the client has taken everything before.
  std::string Pull(TimePoint now) {
    const std::lock_guard lock(mutex_);
    std::string text;
    for (const Shared& event : events_) {
      if (text.empty() && unreported_ > 0) {
        text.append(event->text, 0, event->inside);
        fmt::format_to(std::back_inserter(text), "\"dropped\": {}{}", std::exchange(unreported_, 0),
                       event->text[event->inside] == '}' ? "" : ", ");
        text.append(event->text, event->inside);
      } else {
        text += event->text;
      }
    }
    if (text.empty() && ping_) text = kPing;
    ping_ = false;
    events_.clear();
    bytes_ = 0;
    if (!text.empty()) last_sent_ = now;
    return text;
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

  // Moves readings whose period has passed into the queue.
  bool TakeDue(TimePoint now) {
    bool any = false;
    for (auto waiting = early_.begin(); waiting != early_.end();) {
      const auto sent = sent_.find(waiting->first);
      // A tenth early is on time: both ends have a clock.
      if (sent != sent_.end() && now - sent->second < 0.9 * filter_.period) {
        ++waiting;
        continue;
      }
      sent_.insert_or_assign(waiting->first, now);
      Enqueue(waiting->second);
      waiting = early_.erase(waiting);
      any = true;
    }
    return any;
  }

  void Enqueue(const Shared& event) {
    if (IsFullWith(*event)) Coalesce(*event);
    while (!events_.empty() && IsFullWith(*event)) DropOldest();
    bytes_ += event->text.size();
    events_.push_back(event);
  }

  bool IsFullWith(const EventStreams::Encoded& event) const {
    return events_.size() >= limits_.events || bytes_ + event.text.size() > limits_.bytes;
  }

  // Keeps the newest reading of each device alone.
  void Coalesce(const EventStreams::Encoded& next) {
    std::set<std::string_view> newer;
    if (next.kind == EventKind::kReading) newer.insert(next.device);
    std::deque<Shared> kept;
    for (auto event = events_.rbegin(); event != events_.rend(); ++event) {
      const bool stale =
          (*event)->kind == EventKind::kReading && !newer.insert((*event)->device).second;
      if (stale)
        CountDropped(**event);
      else
        kept.push_front(*event);
    }
    events_ = std::move(kept);
  }

  // Readings go before changes, of which a client wants to know all.
  void DropOldest() {
    auto oldest = std::ranges::find(events_, EventKind::kReading,
                                    [](const Shared& event) { return event->kind; });
    if (oldest == events_.end()) oldest = events_.begin();
    CountDropped(**oldest);
    events_.erase(oldest);
  }

  void CountDropped(const EventStreams::Encoded& event) {
    bytes_ -= event.text.size();
    ++dropped_;
    ++unreported_;
  }

  const EventFilter filter_;
  const EventStreams::Limits limits_;
  std::atomic<bool> left_ = false;
  mutable std::mutex mutex_;
  // Guarded by mutex_, to the end of the class.
  std::deque<Shared> events_{};
  std::size_t bytes_ = 0;
  std::map<std::string, Shared> early_{};    // By device: the newest reading that is not due yet.
  std::map<std::string, TimePoint> sent_{};  // By device: when its last reading was queued.
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

Result<std::shared_ptr<http::PushedResponse>> EventStreams::Open(
    EventFilter filter, std::string_view last_event_id, const std::vector<Event>& present) {
  auto queue = std::make_shared<EventQueue>(std::move(filter), limits_);
  const Clock* clock = &clock_;
  auto response = std::make_shared<http::PushedResponse>(
      [queue] { queue->Leave(); }, [queue, clock] { return queue->Pull(clock->Now()); });
  queue->response = response;
  {
    const std::lock_guard lock(mutex_);
    Prune();
    if (ended_ || queues_.size() >= limits_.streams)
      return Error{ErrorCode::kUnavailable,
                   ended_
                       ? "the daemon is stopping"
                       : fmt::format("there are {} streams already: close some", queues_.size())};
    queues_.push_back(queue);
    for (const Event& event : present)
      if (const auto encoded = Encode(event, 0); queue->Wants(*encoded))
        queue->Add(encoded, clock_.Now());
    Replay(*queue, last_event_id);
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
    if (event->number > number.value() && queue.Wants(*event)) queue.Add(event, clock_.Now());
}

void EventStreams::Publish(const Event& event) {
  const TimePoint now = clock_.Now();
  const std::lock_guard lock(mutex_);
  const bool is_reading = event.kind == EventKind::kReading;
  if (is_reading && queues_.empty()) return;
  const auto encoded = Encode(event, is_reading ? 0 : ++last_number_);
  if (!is_reading) kept_.push_back(encoded);
  if (kept_.size() > limits_.replayed) kept_.pop_front();
  for (const auto& queue : queues_) {
    if (!queue->Wants(*encoded) || !queue->Add(encoded, now)) continue;
    if (const auto response = queue->response.lock()) response->Offer();
  }
}

TimePoint EventStreams::Step() {
  const TimePoint now = clock_.Now();
  const std::lock_guard lock(mutex_);
  Prune();
  for (const auto& queue : queues_) {
    if (!queue->Step(now)) continue;
    if (const auto response = queue->response.lock()) response->Offer();
  }
  return now +
         std::chrono::duration_cast<TimePoint::duration>(queues_.empty() ? limits_.ping : kStep);
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

}  // namespace zeus::daemon
