#include "zeus/gateway/request_record.h"

#include <gmock/gmock.h>

#include <set>

#include "zeus/base/json.h"

namespace zeus::gateway::request_record_test {
namespace {

RequestRecord Named(const std::string& id, const std::string& model = "m") {
  RequestRecord record;
  record.id = id;
  record.model = model;
  record.outcome = "completed";
  return record;
}

TEST(RecordStoreTest, OnlyTheLatestClosedRecordsAreKept) {
  RecordStore store(2);
  std::vector<InferenceRequestId> numbers;
  for (const char* id : {"a", "b", "c", "d"}) numbers.push_back(store.Add(Named(id)).number);
  EXPECT_EQ(store.size(), 4U);  // Open records are never forgotten.
  for (const std::size_t i : {3, 0, 2}) store.Close(numbers[i]);
  EXPECT_EQ(store.Find("d"), nullptr);
  ASSERT_NE(store.Find("a"), nullptr);
  EXPECT_TRUE(store.Find("a")->closed);
  EXPECT_EQ(store.FindOpen(numbers[0]), nullptr);
  EXPECT_EQ(store.FindOpen(numbers[1])->id, "b");
  EXPECT_THAT(store.OpenNumbers(), ::testing::ElementsAre(numbers[1]));
}

TEST(RecordStoreTest, ListsFollowTheOrderOfClosing) {
  RecordStore store(10);
  std::vector<InferenceRequestId> numbers;
  for (const char* id : {"a", "b", "c"})
    numbers.push_back(store.Add(Named(id, id == std::string("b") ? "other" : "m")).number);
  for (const std::size_t i : {2, 1, 0}) store.Close(numbers[i]);
  const auto ids = [](const std::vector<const RequestRecord*>& records) {
    std::string all;
    for (const RequestRecord* record : records) all += record->id;
    return all;
  };
  EXPECT_EQ(ids(store.List("", "", 10)), "cba");
  EXPECT_EQ(ids(store.List("c", "", 10)), "ba");
  EXPECT_EQ(ids(store.List("", "m", 10)), "ca");
  EXPECT_EQ(ids(store.List("", "", 2)), "cb");
  EXPECT_EQ(ids(store.List("unknown", "", 10)), "cba");
}

TEST(RequestRecordTest, IdentifiersSortByTimeAndDiffer) {
  const WallTime early{std::chrono::microseconds(1'700'000'000'000'000)};
  const std::string first = MakeRequestId(early);
  const std::string second = MakeRequestId(early + std::chrono::seconds(1));
  EXPECT_EQ(first.size(), 28U);
  EXPECT_LT(first, second);
  std::set<std::string> ids;
  for (int i = 0; i < 1000; ++i) ids.insert(MakeRequestId(early));
  EXPECT_EQ(ids.size(), 1000U);
}

TEST(RequestRecordTest, KeysBecomeLabels) {
  EXPECT_EQ(KeyLabel(""), "");
  EXPECT_EQ(KeyLabel("Bearer a").size(), 16U);
  EXPECT_NE(KeyLabel("Bearer a"), KeyLabel("Bearer b"));
}

TEST(RequestRecordTest, JsonHasTheTimesThatTheServerTold) {
  RequestRecord record = Named("r-1");
  EXPECT_FALSE(ToJson(record, TimePoint()).contains("server_times"));
  record.server_times = {.queue = Seconds(0.25), .decode = Seconds(2)};
  EXPECT_EQ(ToJson(record, TimePoint())["server_times"],
            (Json{{"queue_seconds", 0.25}, {"decode_seconds", 2.0}}));
}

TEST(RequestRecordTest, JsonHasTheEnergyOrTheReason) {
  RequestRecord record = Named("r-1");
  record.absent_reason = "no GPU";
  Json json = ToJson(record, TimePoint());
  EXPECT_TRUE(json["energy_joules"].is_null());
  EXPECT_EQ(json["absent_reason"], "no GPU");
  record.absent_reason.clear();
  record.ended = TimePoint(Seconds(2));
  record.energy = RequestEnergy{.energy = Joules(10),
                                .sigma = Joules(1),
                                .prefill = Joules(4),
                                .decode = Joules(6),
                                .output_tokens = 5,
                                .final = true};
  json = ToJson(record, TimePoint(Seconds(9)));
  EXPECT_EQ(json["energy_joules"], 10);
  EXPECT_EQ(json["avg_power_watts"], 5);
  EXPECT_EQ(json["joules_per_output_token"], 2);
  EXPECT_EQ(json["final"], true);
  EXPECT_EQ(MakeNote(record, TimePoint(Seconds(9))).duration, Seconds(2));
}

}  // namespace
}  // namespace zeus::gateway::request_record_test
