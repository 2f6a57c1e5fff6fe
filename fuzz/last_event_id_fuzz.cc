// Last-Event-ID of clients that return to a stream of events. Whatever it says, the stream begins
// with whole events, each of them at most once and later than the id, and others' are not in it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "zeus/base/clock.h"
#include "zeus/base/json.h"
#include "zeus/live/event_stream.h"

namespace {

using namespace zeus;
using namespace zeus::live;

constexpr std::size_t kPublished = 40;

void Require(bool promise) {
  if (!promise) std::abort();
}

EventStreams& Streams() {
  static SystemClock clock;
  static auto* const streams = [] {
    auto* made = new EventStreams(clock, "run", {});
    for (std::size_t i = 0; i < kPublished; ++i)
      made->Publish({.kind = i % 2 == 0 ? EventKind::kLease : EventKind::kKnob,
                     .device = "GPU-1",
                     .subject = i % 4 == 0 ? "uid:1" : "",
                     .data = "{\"n\": " + std::to_string(i + 1) + "}"});
    return made;
  }();
  return *streams;
}

// Checks the text of a stream; returns the number of events in it.
std::size_t CheckEvents(std::string_view text) {
  std::size_t events = 0;
  std::size_t last = 0;
  while (!text.empty()) {
    const std::size_t end = text.find("\n\n");
    Require(end != std::string_view::npos);
    const std::string_view event = text.substr(0, end);
    text.remove_prefix(end + 2);
    if (event == ":") continue;
    Require(event.starts_with("id: run-"));
    const std::size_t data = event.find("\ndata: ");
    Require(data != std::string_view::npos);
    const auto json = ParseJson(event.substr(data + 7));
    Require(json.ok());
    const auto number = json.value().at("n").get<std::size_t>();
    Require(number > last && (number - 1) % 4 != 0);  // Those of uid:1 are not this client's.
    last = number;
    ++events;
  }
  return events;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view id(reinterpret_cast<const char*>(data), size);
  EventFilter filter;
  filter.subject = "uid:2";
  filter.kinds = {EventKind::kLease, EventKind::kKnob};
  // Half of the ids begin as those of this run do.
  const std::string given = size % 2 == 0 ? std::string(id) : "run-" + std::string(id);
  const auto response = Streams().Open(filter, given);
  Require(response.ok());
  auto news = response.value()->Next();
  Require(news.head.has_value());
  const std::string text = news.head->body + news.bytes;
  Require(CheckEvents(text) <= kPublished);
  response.value()->ClientLeft();
  Streams().Step([](const auto&) { return std::string(); });
  return 0;
}
