#include "zeus/daemon/event_stream.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "zeus/base/clock.h"

namespace zeus::daemon {
namespace event_stream_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Event Reading(const std::string& device, int watts) {
  return {.kind = EventKind::kReading,
          .device = device,
          .data = fmt::format(R"({{"device": "{}", "watts": {}}})", device, watts)};
}
Event Lease(int number, const std::string& subject = "") {
  return {.kind = EventKind::kLease,
          .subject = subject,
          .data = fmt::format(R"({{"lease": {}}})", number)};
}

class EventStreamsTest : public ::testing::Test {
 protected:
  // Opens a stream and takes its head.
  std::shared_ptr<http::PushedResponse> Open(const EventFilter& filter = {},
                                             const std::string& last = "") {
    auto response = streams_.Open(filter, last);
    EXPECT_TRUE(response.ok());
    const auto news = response.value()->Next();
    EXPECT_TRUE(news.head);
    EXPECT_EQ(news.head->content_type, "text/event-stream");
    first_ = news.bytes;
    return response.value();
  }

  VirtualClock clock_;
  EventStreams streams_{clock_, "r1", {.streams = 3, .events = 4, .bytes = 1000, .replayed = 5}};
  std::string first_;
};

TEST_F(EventStreamsTest, AnEventReachesEveryClientInTheFormatOfServerSentEvents) {
  const auto one = Open();
  const auto other = Open();
  streams_.Publish(Reading("GPU-0", 100));
  streams_.Publish(Lease(7));
  const std::string expected =
      "event: reading\ndata: {\"device\": \"GPU-0\", \"watts\": 100}\n\n"
      "id: r1-1\nevent: lease\ndata: {\"lease\": 7}\n\n";
  EXPECT_EQ(one->Next().bytes, expected);
  EXPECT_EQ(other->Next().bytes, expected);
  EXPECT_TRUE(one->Next().empty());
}

TEST_F(EventStreamsTest, TheServerIsWokenOnceForManyEvents) {
  const auto response = Open();
  int wakes = 0;
  response->WakeBy([&] { ++wakes; });
  streams_.Publish(Reading("GPU-0", 1));
  streams_.Publish(Reading("GPU-0", 2));
  EXPECT_EQ(wakes, 1);
  EXPECT_THAT(response->Next().bytes, AllOf(HasSubstr("\"watts\": 1"), HasSubstr("\"watts\": 2")));
  streams_.Publish(Reading("GPU-0", 3));
  EXPECT_EQ(wakes, 2);
}

TEST_F(EventStreamsTest, AFilterChoosesDevicesKindsAndSubjects) {
  const auto device = Open({.devices = {"GPU-1"}, .subject = "uid:1"});
  const auto kind = Open({.kinds = {EventKind::kLease}, .subject = "uid:2"});
  const auto admin = Open({.sees_all = true});
  streams_.Publish(Reading("GPU-0", 1));
  streams_.Publish(Reading("GPU-1", 2));
  streams_.Publish(Lease(3, "uid:2"));
  EXPECT_THAT(device->Next().bytes,
              AllOf(HasSubstr("GPU-1"), Not(HasSubstr("GPU-0")), Not(HasSubstr("lease"))));
  EXPECT_THAT(kind->Next().bytes, AllOf(HasSubstr("\"lease\": 3"), Not(HasSubstr("GPU"))));
  EXPECT_THAT(admin->Next().bytes,
              AllOf(HasSubstr("GPU-0"), HasSubstr("GPU-1"), HasSubstr("\"lease\": 3")));
}

TEST_F(EventStreamsTest, ASlowClientKeepsTheNewestReadingsAndIsToldOfTheLoss) {
  const auto slow = Open();
  for (int i = 0; i < 100; ++i) {
    streams_.Publish(Reading("GPU-0", i));
    streams_.Publish(Reading("GPU-1", 1000 + i));
  }
  const std::string text = slow->Next().bytes;
  EXPECT_THAT(text, HasSubstr("\"watts\": 99}"));
  EXPECT_THAT(text, HasSubstr("\"watts\": 1099}"));
  const auto kept = static_cast<std::size_t>(std::ranges::count(text, '{'));
  EXPECT_LE(kept, 4U);
  EXPECT_THAT(text, HasSubstr(fmt::format("data: {{\"dropped\": {}, \"device\"", 200 - kept)));
  EXPECT_EQ(streams_.counts().dropped, 200 - kept);
  streams_.Publish(Reading("GPU-0", 5));
  EXPECT_THAT(slow->Next().bytes, Not(HasSubstr("dropped")));
}

TEST_F(EventStreamsTest, ChangesAreKeptBeforeReadingsAndUpToTheBound) {
  const auto slow = Open();
  streams_.Publish(Lease(1));
  for (int i = 0; i < 10; ++i) streams_.Publish(Reading(fmt::format("GPU-{}", i), i));
  EXPECT_THAT(slow->Next().bytes, AllOf(HasSubstr("\"lease\": 1"), HasSubstr("GPU-9")));
  for (int i = 2; i < 9; ++i) streams_.Publish(Lease(i));
  EXPECT_THAT(slow->Next().bytes,
              AllOf(HasSubstr("{\"dropped\": 3, \"lease\": 5}"), HasSubstr("\"lease\": 8"),
                    Not(HasSubstr("\"lease\": 4}"))));
}

TEST_F(EventStreamsTest, TheBytesOfAQueueAreBoundedToo) {
  const auto slow = Open();
  const Event large{.kind = EventKind::kNotice,
                    .data = "{\"x\": \"" + std::string(600, 'x') + "\"}"};
  for (int i = 0; i < 3; ++i) streams_.Publish(large);
  EXPECT_LT(slow->Next().bytes.size(), 1000U);
  EXPECT_EQ(streams_.counts().dropped, 2U);
}

TEST_F(EventStreamsTest, ChangesAfterTheLastIdAreReplayedAndReadingsAreNot) {
  for (int i = 1; i <= 3; ++i) streams_.Publish(Lease(i));
  streams_.Publish(Reading("GPU-0", 1));
  Open({}, "r1-1");
  EXPECT_THAT(first_, AllOf(HasSubstr("id: r1-2\n"), HasSubstr("id: r1-3\n"),
                            Not(HasSubstr("id: r1-1\n")), Not(HasSubstr("reading"))));
  for (const std::string strange :
       {"r0-1", "r1-", "r1-x", "r1-99999999999999999999", "r1-4", "1", "r1--1", "\xff"}) {
    const auto response = Open({}, strange);
    EXPECT_EQ(first_, ":\n\n") << strange;
    response->ClientLeft();
  }
}

TEST_F(EventStreamsTest, OnlySoManyChangesAreKeptForReplay) {
  EventStreams roomy(clock_, "r1", {.replayed = 5});
  for (int i = 1; i <= 9; ++i) roomy.Publish(Lease(i));
  const auto response = roomy.Open({}, "r1-1").value();
  const std::string text = response->Next().bytes;
  EXPECT_THAT(
      text, AllOf(HasSubstr("id: r1-5\n"), HasSubstr("id: r1-9\n"), Not(HasSubstr("id: r1-4\n"))));
}

TEST_F(EventStreamsTest, APeriodThinsReadingsOutAndTheLastOneComesInTheEnd) {
  const auto response = Open({.period = Seconds(1)});
  std::string text;
  for (int i = 0; i < 25; ++i) {
    streams_.Publish(Reading("GPU-0", i));
    text += response->Next().bytes;
    clock_.Advance(std::chrono::milliseconds(100));
  }
  const auto sent = static_cast<std::size_t>(std::ranges::count(text, '{'));
  EXPECT_EQ(sent, 3U);
  EXPECT_THAT(text, Not(HasSubstr("\"watts\": 24}")));
  clock_.Advance(std::chrono::seconds(1));
  streams_.Step();
  EXPECT_THAT(response->Next().bytes, HasSubstr("\"watts\": 24}"));
}

TEST_F(EventStreamsTest, ASilentStreamCarriesACommentNowAndThen) {
  const auto response = Open();
  clock_.Advance(std::chrono::seconds(15));
  EXPECT_GT(streams_.Step(), clock_.Now());
  EXPECT_EQ(response->Next().bytes, ":\n\n");
  clock_.Advance(std::chrono::seconds(14));
  streams_.Step();
  EXPECT_TRUE(response->Next().empty());
  streams_.Publish(Lease(1));
  response->Next();
  clock_.Advance(std::chrono::seconds(14));
  streams_.Step();
  EXPECT_TRUE(response->Next().empty());
}

TEST_F(EventStreamsTest, TooManyStreamsAreRefusedUntilOneLeaves) {
  auto first = Open();
  const auto second = Open();
  const auto third = Open();
  EXPECT_EQ(streams_.Open({}).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(streams_.counts().streams, 3U);
  second->ClientLeft();
  EXPECT_TRUE(streams_.Open({}).ok());  // Its response goes at once, and makes room, too.
  first.reset();
  EXPECT_TRUE(streams_.Open({}).ok());
  EXPECT_EQ(streams_.counts().streams, 1U);
}

TEST_F(EventStreamsTest, ThePresentComesFirst) {
  const auto response = streams_.Open({}, "", {Reading("GPU-0", 42)}).value();
  EXPECT_THAT(response->Next().bytes, HasSubstr("\"watts\": 42}"));
}

TEST_F(EventStreamsTest, TheEndOfTheDaemonEndsTheStreams) {
  const auto response = Open();
  streams_.EndAll();
  EXPECT_TRUE(response->Next().ended);
  EXPECT_EQ(streams_.Open({}).error().message, "the daemon is stopping");
}

TEST(EventKindTest, NamesAndKindsAgree) {
  for (const char* name : {"reading", "lease", "knob", "notice"})
    EXPECT_EQ(Name(ParseEventKind(name).value()), name);
  EXPECT_THAT(ParseEventKind("ping").error().message, HasSubstr("no kind of event"));
}

}  // namespace event_stream_test
}  // namespace zeus::daemon
