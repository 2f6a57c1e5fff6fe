#include "zeus/daemon/api/polled_streams.h"

#include <utility>

#include "zeus/daemon/api/call.h"

namespace zeus::daemon {

PolledStreams::PolledStreams(const Clock& clock)
    : clock_(clock), ticker_(std::make_unique<Ticker>("zeusd-power", [this] { return Step(); })) {}

PolledStreams::~PolledStreams() {
  ticker_.reset();
  EndAll();
}

http::Answer PolledStreams::Follow(Source source) {
  auto self = std::make_shared<std::weak_ptr<http::PushedResponse>>();
  const auto left = [this, self] {
    const std::lock_guard lock(mutex_);
    if (const auto response = self->lock()) streams_.remove(response);
  };
  auto response = std::make_shared<http::PushedResponse>(left, [this, source = std::move(source)] {
    std::string text = source(clock_.Now());
    return text.empty() ? nullptr : std::make_shared<const std::string>(std::move(text));
  });
  *self = response;
  {
    const std::lock_guard lock(mutex_);
    if (streams_.size() >= kMostStreams)
      return ToAnswer(Error{ErrorCode::kUnavailable, "there are too many streams: end one first"});
    streams_.push_back(response);
  }
  response->Start({.body = ":\n\n",
                   .content_type = "text/event-stream",
                   .headers = {{"Cache-Control", "no-store"}}});
  response->Offer();
  ticker_->Wake();
  return {.pushed = std::move(response)};
}

TimePoint PolledStreams::Step() {
  const std::lock_guard lock(mutex_);
  if (streams_.empty()) return Ticker::kWhenWoken;
  for (const auto& stream : streams_) stream->Offer();
  return clock_.Now() + kPeriod;
}

void PolledStreams::EndAll() {
  const std::lock_guard lock(mutex_);
  for (const auto& stream : streams_) stream->End();
  streams_.clear();
}

std::size_t PolledStreams::size() const {
  const std::lock_guard lock(mutex_);
  return streams_.size();
}

}  // namespace zeus::daemon
