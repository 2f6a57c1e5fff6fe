#include "zeus/live/event_stream.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "zeus/base/clock.h"

namespace zeus::live {
namespace event_stream_test {

using namespace std::chrono_literals;

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

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

  // Readings of `watts`, to the clients whose period has passed by now.
  void SendReadings(int watts) {
    streams_.Step([&](const std::set<std::string>& devices) {
      ++made_;
      return fmt::format(R"({{"devices": "{}", "watts": {}}})", fmt::join(devices, " "), watts);
    });
  }
  void SendComments() {
    streams_.Step([](const auto&) { return ""; });
  }

  VirtualClock clock_;
  int made_ = 0;  // Texts of readings.
  EventStreams streams_{clock_, "r1", {.streams = 3, .events = 4, .bytes = 1000, .replayed = 5}};
  std::string first_;
};

TEST_F(EventStreamsTest, AnEventReachesEveryClientInTheFormatOfServerSentEvents) {
  const auto one = Open();
  const auto other = Open();
  clock_.Advance(1s);
  SendReadings(100);
  streams_.Publish(Lease(7));
  const std::string expected =
      "id: r1-1\nevent: lease\ndata: {\"lease\": 7}\n\n"
      "event: reading\ndata: {\"devices\": \"\", \"watts\": 100}\n\n";
  EXPECT_EQ(one->Next().bytes, expected);
  EXPECT_EQ(other->Next().bytes, expected);
  EXPECT_TRUE(one->Next().empty());
}

TEST_F(EventStreamsTest, ClientsOfAServerAreServedByItsOwnThread) {
  std::vector<http::Courier::Task> tasks;
  const auto courier = std::make_shared<http::Courier>(
      [&](http::Courier::Task task) { tasks.push_back(std::move(task)); });
  const auto one = Open();
  const auto other = Open();
  const auto elsewhere = Open();
  one->WakeBy([] {}, courier);
  other->WakeBy([] {}, courier);
  clock_.Advance(1s);
  SendReadings(100);
  // One task for both; whose server is not known yet is served at once.
  ASSERT_EQ(tasks.size(), 1U);
  EXPECT_TRUE(one->Next().empty());
  EXPECT_THAT(elsewhere->Next().bytes, HasSubstr("100"));
  tasks.front()();
  EXPECT_THAT(one->Next().bytes, HasSubstr("100"));
  EXPECT_THAT(other->Next().bytes, HasSubstr("100"));
  other->ClientLeft();
  clock_.Advance(1s);
  SendReadings(200);
  ASSERT_EQ(tasks.size(), 2U);
  tasks.back()();
  EXPECT_THAT(one->Next().bytes, HasSubstr("200"));
  EXPECT_TRUE(other->Next().empty());
  courier->Close();
  clock_.Advance(1s);
  SendReadings(300);
  EXPECT_EQ(tasks.size(), 2U);
}

TEST_F(EventStreamsTest, ReadingsAreWantedWhileSomebodyFollowsThem) {
  EXPECT_FALSE(streams_.readings_wanted());
  const auto changes = Open({.kinds = {EventKind::kLease}});
  SendReadings(1);
  EXPECT_FALSE(streams_.readings_wanted());
  const auto readings = Open();
  EXPECT_TRUE(streams_.readings_wanted());
  clock_.Advance(1s);
  SendReadings(2);
  EXPECT_TRUE(streams_.readings_wanted());
  readings->ClientLeft();
  clock_.Advance(1s);
  SendReadings(3);
  EXPECT_FALSE(streams_.readings_wanted());
}

TEST_F(EventStreamsTest, ClientsOfTheSameDevicesAndPeriodGetTheSameBytes) {
  const auto one = Open({.devices = {"GPU-0", "GPU-1"}, .period = 100ms});
  clock_.Advance(30ms);
  const auto other = Open({.devices = {"GPU-0", "GPU-1"}, .period = 100ms});
  const auto slower = Open({.devices = {"GPU-0", "GPU-1"}, .period = 200ms});
  clock_.Advance(170ms);
  SendReadings(1);
  EXPECT_EQ(made_, 1);
  const auto bytes = one->NextOffered();
  ASSERT_TRUE(bytes && *bytes);
  EXPECT_THAT(**bytes, HasSubstr("GPU-0 GPU-1"));
  EXPECT_EQ(other->NextOffered(), bytes);
  EXPECT_EQ(slower->NextOffered(), bytes);
}

TEST_F(EventStreamsTest, TheServerIsWokenOnceForManyEvents) {
  const auto response = Open();
  int wakes = 0;
  response->WakeBy([&] { ++wakes; });
  streams_.Publish(Lease(1));
  streams_.Publish(Lease(2));
  EXPECT_EQ(wakes, 1);
  EXPECT_THAT(response->Next().bytes, AllOf(HasSubstr("\"lease\": 1"), HasSubstr("\"lease\": 2")));
  streams_.Publish(Lease(3));
  EXPECT_EQ(wakes, 2);
}

TEST_F(EventStreamsTest, AFilterChoosesDevicesKindsAndSubjects) {
  const auto device = Open({.devices = {"GPU-1"}, .subject = "uid:1"});
  const auto kind = Open({.kinds = {EventKind::kLease}, .subject = "uid:2"});
  const auto admin = Open({.sees_all = true});
  clock_.Advance(1s);
  SendReadings(1);
  streams_.Publish({.kind = EventKind::kKnob, .device = "GPU-0", .data = "{\"knob\": 0}"});
  streams_.Publish(Lease(3, "uid:2"));
  EXPECT_THAT(device->Next().bytes,
              AllOf(HasSubstr("GPU-1"), Not(HasSubstr("knob")), Not(HasSubstr("lease"))));
  EXPECT_THAT(kind->Next().bytes, AllOf(HasSubstr("\"lease\": 3"), Not(HasSubstr("watts"))));
  EXPECT_THAT(admin->Next().bytes,
              AllOf(HasSubstr("watts"), HasSubstr("\"knob\": 0"), HasSubstr("\"lease\": 3")));
}

TEST_F(EventStreamsTest, ASlowClientGetsTheNewestReadingsAndIsToldOfTheLoss) {
  const auto slow = Open();
  for (int i = 0; i < 100; ++i) {
    clock_.Advance(1s);
    SendReadings(i);
  }
  EXPECT_EQ(slow->Next().bytes,
            "event: reading\ndata: {\"dropped\": 99, \"devices\": \"\", \"watts\": 99}\n\n");
  EXPECT_EQ(streams_.counts().dropped, 99U);
  clock_.Advance(1s);
  SendReadings(5);
  EXPECT_THAT(slow->Next().bytes, Not(HasSubstr("dropped")));
}

TEST_F(EventStreamsTest, ReadingsTakeNoPlaceFromChangesWhoseQueueIsBounded) {
  const auto slow = Open();
  streams_.Publish(Lease(1));
  for (int i = 0; i < 10; ++i) {
    clock_.Advance(1s);
    SendReadings(i);
  }
  EXPECT_THAT(slow->Next().bytes,
              AllOf(HasSubstr("{\"dropped\": 9, \"lease\": 1}"), HasSubstr("\"watts\": 9}")));
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

TEST_F(EventStreamsTest, APeriodSaysHowOftenReadingsCome) {
  clock_.Advance(450ms);
  const auto response = Open({.period = 1s});
  std::vector<std::string> texts;
  for (int i = 0; i < 25; ++i) {
    SendReadings(i);
    if (auto bytes = response->Next().bytes; !bytes.empty()) texts.push_back(std::move(bytes));
    clock_.Advance(100ms);
  }
  // At whole seconds, as for everybody with this period; a step that comes late is made up for.
  EXPECT_THAT(texts, ElementsAre(HasSubstr("\"watts\": 6}"), HasSubstr("\"watts\": 16}")));
  EXPECT_EQ(streams_.Step([](const auto&) { return ""; }), TimePoint(3s));
}

TEST_F(EventStreamsTest, NothingIsMadeForClientsThatHaveLeftOrWantNoReadings) {
  const auto leases = Open({.kinds = {EventKind::kLease}});
  const auto response = Open();
  response->ClientLeft();
  clock_.Advance(1s);
  SendReadings(1);
  EXPECT_EQ(made_, 0);
}

TEST_F(EventStreamsTest, ASilentStreamCarriesACommentNowAndThen) {
  const auto response = Open();
  clock_.Advance(15s);
  SendComments();
  EXPECT_EQ(response->Next().bytes, ":\n\n");
  clock_.Advance(14s);
  SendComments();
  EXPECT_TRUE(response->Next().empty());
  streams_.Publish(Lease(1));
  response->Next();
  clock_.Advance(14s);
  SendComments();
  EXPECT_TRUE(response->Next().empty());
  clock_.Advance(1s);
  SendComments();
  EXPECT_EQ(response->Next().bytes, ":\n\n");
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
  const auto response = streams_.Open({}, "", R"({"watts": 42})").value();
  EXPECT_THAT(response->Next().bytes, HasSubstr("\"watts\": 42}"));
}

TEST_F(EventStreamsTest, TheEndOfTheDaemonEndsTheStreams) {
  const auto response = Open();
  streams_.EndAll();
  EXPECT_TRUE(response->Next().ended);
  EXPECT_EQ(streams_.Open({}).error().message, "the server is stopping");
}

TEST(EventKindTest, NamesAndKindsAgree) {
  for (const char* name : {"reading", "lease", "knob", "notice"})
    EXPECT_EQ(Name(ParseEventKind(name).value()), name);
  EXPECT_THAT(ParseEventKind("ping").error().message, HasSubstr("no kind of event"));
}

}  // namespace event_stream_test
}  // namespace zeus::live
