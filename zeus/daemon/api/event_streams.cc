#include "zeus/daemon/api/event_streams.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "zeus/base/text.h"
#include "zeus/daemon/api/call.h"

namespace zeus::daemon {
namespace {

using namespace std::chrono_literals;

constexpr Seconds kPingPeriod = 15s;
constexpr Seconds kShortestStep = 5ms;

const char* NameOf(Event::Kind kind) {
  switch (kind) {
    case Event::Kind::kLease:
      return "lease";
    case Event::Kind::kKnob:
      return "knob";
    case Event::Kind::kNotice:
      break;
  }
  return "notice";
}

}  // namespace

EventStreams::EventStreams(const Clock& clock)
    : clock_(clock),
      ticker_(std::make_unique<Ticker>("zeusd-streams", [this] { return Step(); })) {}

EventStreams::~EventStreams() {
  ticker_.reset();
  EndAll();
}

std::string EventStreams::TextOf(const Numbered& event) {
  return fmt::format("id: {}\nevent: {}\ndata: {}\n\n", event.number, NameOf(event.event.kind),
                     event.event.data);
}

http::Answer EventStreams::Follow(Request request) {
  auto stream = std::make_shared<Stream>();
  const std::weak_ptr<Stream> weak = stream;
  stream->response = std::make_shared<http::PushedResponse>([this, weak] {
    const std::lock_guard lock(mutex_);
    if (const auto left = weak.lock()) std::erase(streams_, left);
  });
  stream->request = std::move(request);
  stream->due = stream->sent = clock_.Now();
  const auto after = ParseUnsigned(stream->request.last_event_id);
  {
    const std::lock_guard lock(mutex_);
    if (streams_.size() >= kMostStreams)
      return ToAnswer(Error{ErrorCode::kUnavailable, "there are too many streams: end one first"});
    std::string missed = ": zeusd\n\n";
    if (after.ok() && stream->request.wants)
      for (const Numbered& event : kept_)
        if (event.number > after.value() && stream->request.wants(event.event))
          missed += TextOf(event);
    stream->response->Start({.body = std::move(missed),
                             .content_type = "text/event-stream",
                             .headers = {{"Cache-Control", "no-store"}}});
    streams_.push_back(stream);
  }
  ticker_->Wake();
  return {.pushed = stream->response};
}

void EventStreams::Send(Stream& stream, const std::string& text, TimePoint now) {
  if (stream.response->waiting() + text.size() > kMostWaiting) {
    ++stream.dropped;
    ++dropped_;
    return;
  }
  if (stream.dropped > 0)
    stream.response->Push(fmt::format("event: notice\ndata: {{\"dropped\":{}}}\n\n",
                                      std::exchange(stream.dropped, 0)));
  stream.response->Push(text);
  stream.sent = now;
}

void EventStreams::Publish(const Event& event) {
  const TimePoint now = clock_.Now();
  const std::lock_guard lock(mutex_);
  kept_.push_back({.number = ++number_, .event = event});
  if (kept_.size() > kKept) kept_.pop_front();
  std::string text;
  for (const auto& stream : streams_) {
    if (!stream->request.wants || !stream->request.wants(event)) continue;
    if (text.empty()) text = TextOf(kept_.back());
    Send(*stream, text, now);
  }
}

TimePoint EventStreams::Step() {
  const TimePoint now = clock_.Now();
  TimePoint next = Ticker::kWhenWoken;
  const std::lock_guard lock(mutex_);
  for (const auto& stream : streams_) {
    if (stream->request.readings && stream->due <= now + kShortestStep) {
      stream->due += stream->request.period;
      if (stream->due <= now) stream->due = now + stream->request.period;
      // The newest readings replace those that a slow client has not taken.
      if (stream->response->waiting() > 0) {
        ++stream->dropped;
        ++dropped_;
      } else if (const std::string text = stream->request.readings(now); !text.empty()) {
        Send(*stream, text, now);
      }
    }
    if (now - stream->sent >= kPingPeriod) Send(*stream, "event: ping\ndata: {}\n\n", now);
    next = std::min(next, stream->sent + kPingPeriod);
    if (stream->request.readings) next = std::min(next, stream->due);
  }
  return next == Ticker::kWhenWoken ? next : std::max(next, now + kShortestStep);
}

void EventStreams::EndAll() {
  const std::lock_guard lock(mutex_);
  for (const auto& stream : streams_) stream->response->End();
  streams_.clear();
}

std::size_t EventStreams::size() const {
  const std::lock_guard lock(mutex_);
  return streams_.size();
}

}  // namespace zeus::daemon
