#include "zeus/colosseum/api/colosseum_api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeus/base/json.h"
#include "zeus/colosseum/testing/memory_duel_repository.h"
#include "zeus/colosseum/testing/scripted_host.h"
#include "zeus/http/pushed_response.h"

namespace zeus::colosseum {
namespace colosseum_api_test {

using ::testing::HasSubstr;
using ::testing::Not;

class ColosseumApiTest : public ::testing::Test {
 protected:
  ~ColosseumApiTest() override { host_.EndAll(); }

  http::Answer Ask(const std::string& method, const std::string& target,
                   const std::string& body = "") {
    http::Request request{.method = method, .target = target, .body = body, .address = "192.0.2.1"};
    http::Answer answer = api_.Handle(request);
    sent_ += answer.body;
    for (const auto& [name, value] : answer.headers) sent_ += name + value;
    return answer;
  }
  Json AskJson(const std::string& method, const std::string& target, const std::string& body = "",
               int status = 200) {
    const http::Answer answer = Ask(method, target, body);
    EXPECT_EQ(answer.status, status) << answer.body;
    return ParseJson(answer.body).value();
  }
  std::string Begin(const std::string& body = R"({"prompt": "why?"})") {
    return AskJson("POST", "/zeus/duels", body, 201)["id"].get<std::string>();
  }
  // The bytes of a stream so far.
  std::string Stream(const http::Answer& answer) {
    for (int i = 0; i < 100; ++i) {
      arena_.Step();
      clock_.Advance(Seconds(0.1));
    }
    std::string bytes;
    while (true) {
      const auto news = answer.pushed->Next();
      bytes += news.bytes;
      ended_ = ended_ || news.ended;
      cut_ = cut_ || news.aborted;
      if (news.empty()) break;
    }
    sent_ += bytes;
    return bytes;
  }
  void CompleteBoth() {
    host_.Complete(host_.asked.size() - 2, "answer A", 10.125);
    host_.Complete(host_.asked.size() - 1, "answer B", 50.25);
  }
  // Everything that would unmask a duel of the scripted host.
  void ExpectBlind() const {
    for (const char* secret : {"left-8b", "right-70b", "SECRET", "secret", "10.125", "50.25",
                               "4321", "1234", "98.5", "543.21", "joules", "tokens", "model"})
      EXPECT_THAT(sent_, Not(HasSubstr(secret)));
  }

  VirtualClock clock_;
  testing::MemoryDuelRepository repository_;
  testing::ScriptedHost host_;
  Arena arena_{
      repository_, host_, clock_, [seed = std::uint64_t{7}]() mutable { return ++seed; }, {}};
  HttpMetrics metrics_;
  ColosseumApi api_{arena_, metrics_, nullptr, {}};
  std::string sent_{};  // Every byte that clients got.
  bool ended_ = false;
  bool cut_ = false;
};

TEST_F(ColosseumApiTest, NothingUnmasksBeforeTheVote) {
  const std::string id = Begin();
  const http::Answer events = Ask("GET", "/zeus/duels/" + id + "/events");
  ASSERT_TRUE(events.pushed);
  Ask("GET", "/zeus/duels/" + id);
  EXPECT_EQ(Ask("POST", "/zeus/duels/" + id + "/vote", R"({"choice": "a"})").status, 409);
  CompleteBoth();
  EXPECT_THAT(Stream(events), HasSubstr(R"("stage":"voting")"));
  EXPECT_TRUE(ended_);
  Ask("GET", "/zeus/duels/" + id);
  EXPECT_EQ(Ask("POST", "/zeus/duels/" + id + "/worth", R"({"worth": true})").status, 409);
  EXPECT_EQ(Ask("POST", "/zeus/duels/" + id + "/change", R"({"choice": "a"})").status, 409);
  Ask("GET", "/zeus/duels");
  ExpectBlind();
}

TEST_F(ColosseumApiTest, OtherPagesDoNotMoveBeforeTheReveal) {
  const std::string board = Ask("GET", "/zeus/leaderboard").body;
  const std::string id = Begin();
  Stream(Ask("GET", "/zeus/duels/" + id + "/events"));
  CompleteBoth();
  EXPECT_EQ(Ask("GET", "/zeus/leaderboard").body, board);
  EXPECT_THAT(Ask("GET", "/metrics").body, Not(HasSubstr("left-8b")));
  // Neither does a vote whose second question is open.
  AskJson("POST", "/zeus/duels/" + id + "/vote", R"({"choice": "b"})");
  clock_.Advance(Seconds(60));
  EXPECT_EQ(Ask("GET", "/zeus/leaderboard").body, board);
}

TEST_F(ColosseumApiTest, TheVoteBringsTheEnergyAndTheRevealTheNames) {
  const std::string id = Begin();
  CompleteBoth();
  Json duel = AskJson("POST", "/zeus/duels/" + id + "/vote", R"({"choice": "b"})");
  EXPECT_EQ(duel["stage"], "weighing");
  EXPECT_EQ(duel["energy"]["a"]["energy_joules"], 10.125);
  EXPECT_EQ(duel["energy"]["b"]["sigma_joules"], 0.1);
  EXPECT_EQ(duel["comparison"]["verdict"], "b_more");
  EXPECT_NEAR(duel["comparison"]["ratio"].get<double>(), 4.963, 0.001);
  EXPECT_EQ(duel["power_watts"]["a"][0][1], 543.21);
  EXPECT_FALSE(duel.contains("answers"));
  EXPECT_THAT(JsonText(duel), Not(HasSubstr("left-8b")));
  duel = AskJson("POST", "/zeus/duels/" + id + "/worth", R"({"worth": false})");
  EXPECT_EQ(duel["stage"], "revealed");
  EXPECT_EQ(duel["answers"]["a"]["output_tokens"], 1234);
  EXPECT_EQ(duel["votes"]["worth"], "no");
  duel = AskJson("POST", "/zeus/duels/" + id + "/change", R"({"choice": "a"})");
  EXPECT_EQ(duel["votes"]["response"], "b");
  EXPECT_EQ(duel["votes"]["change"], "a");
  const Json list = AskJson("GET", "/zeus/duels");
  ASSERT_EQ(list["duels"].size(), 1U);
  EXPECT_EQ(list["duels"][0]["votes"]["change"], "a");
  // A reader of the list must not be able to vote in the name of others.
  EXPECT_THAT(JsonText(list), Not(HasSubstr(id)));
  EXPECT_EQ(AskJson("GET", "/zeus/duels?before=2001-01-01T00:00:00Z")["duels"].size(), 0U);
  EXPECT_EQ(Ask("GET", "/zeus/duels?before=yesterday").status, 422);
  clock_.Advance(Seconds(60));
  const Json board = AskJson("GET", "/zeus/leaderboard");
  ASSERT_EQ(board["models"].size(), 2U);
  EXPECT_EQ(board["duels"], 1);
  EXPECT_EQ(board["models"][0]["turned"]["value"], 1);
}

TEST_F(ColosseumApiTest, AFailureUnmasksNobody) {
  const std::string id = Begin();
  const http::Answer events = Ask("GET", "/zeus/duels/" + id + "/events");
  host_.End(1, Error{ErrorCode::kUnavailable, "http://secret:8000: right-70b ended"});
  EXPECT_THAT(Stream(events), HasSubstr(R"("stage":"failed")"));
  EXPECT_EQ(AskJson("GET", "/zeus/duels/" + id)["stage"], "failed");
  EXPECT_EQ(Ask("POST", "/zeus/duels/" + id + "/vote", R"({"choice": "a"})").status, 410);
  ExpectBlind();
}

TEST_F(ColosseumApiTest, MistakesAreNamed) {
  const auto message = [&](const std::string& target, const std::string& body) {
    return AskJson("POST", target, body, 422)["error"]["message"].get<std::string>();
  };
  EXPECT_THAT(message("/zeus/duels", "nonsense"), HasSubstr("JSON"));
  EXPECT_THAT(message("/zeus/duels", "[]"), HasSubstr("object"));
  EXPECT_THAT(message("/zeus/duels", "{}"), HasSubstr("prompt"));
  EXPECT_THAT(message("/zeus/duels", R"({"prompt": 7})"), HasSubstr("prompt"));
  EXPECT_THAT(message("/zeus/duels", R"({"prompt": "  "})"), HasSubstr("empty"));
  EXPECT_THAT(message("/zeus/duels", R"({"prompt": "x", "prefer": "gpt"})"), HasSubstr("gpt"));
  EXPECT_THAT(message("/zeus/duels", R"({"prompt": "x", "preferred": "left-8b"})"),
              HasSubstr("preferred: is not known here: give prompt, prefer"));
  const std::string id = Begin();
  EXPECT_THAT(message("/zeus/duels/" + id + "/vote", R"({"choice": "yes"})"), HasSubstr("a, b or"));
  EXPECT_THAT(message("/zeus/duels/" + id + "/worth", R"({"worth": "yes"})"), HasSubstr("worth"));
  EXPECT_EQ(Ask("GET", "/zeus/duels/unknown").status, 404);
  EXPECT_EQ(Ask("GET", "/zeus/duels?limit=0").status, 422);
  EXPECT_EQ(Ask("GET", "/zeus/duels/unknown/events").status, 404);
  EXPECT_EQ(Ask("DELETE", "/zeus/duels").status, 405);
}

TEST_F(ColosseumApiTest, AStreamGoesOnAfterTheLastEvent) {
  const std::string id = Begin();
  host_.asked[0].listener->OnText("0123456789");
  host_.asked[1].listener->OnText("abcdefghij");
  const std::string first = Stream(Ask("GET", "/zeus/duels/" + id + "/events"));
  EXPECT_THAT(first, HasSubstr("id: 10-10\n"));
  http::Request again{
      .method = "GET", .target = "/zeus/duels/" + id + "/events", .last_event_id = "7-9"};
  EXPECT_THAT(Stream(api_.Handle(again)), HasSubstr(R"({"a":"789","b":"j"})"));
  again.last_event_id = "nonsense";
  EXPECT_THAT(Stream(api_.Handle(again)), HasSubstr(R"("a":"0123456789")"));
}

TEST_F(ColosseumApiTest, AClientThatLeavesBeforeTheFirstByteFollowsNoMore) {
  const std::string id = Begin();
  http::Answer events = Ask("GET", "/zeus/duels/" + id + "/events");
  events = {};  // The server has noticed that nobody waits for it.
  clock_.Advance(Seconds(21));
  arena_.Step();
  EXPECT_TRUE(host_.asked[0].aborted);
  EXPECT_EQ(AskJson("GET", "/zeus/duels/" + id)["stage"], "failed");
}

// --- the reference's clients ---

TEST_F(ColosseumApiTest, TheReferencesClientsFindTheirRoutes) {
  EXPECT_EQ(AskJson("GET", "/models"), Json({{"available_models", {"left-8b", "right-70b"}}}));
  EXPECT_EQ(Ask("GET", "/health").status, 200);
  const auto prompt = [](int index) {
    return JsonText({{"request_id", "0a1b2c3d-duel"},
                     {"prompt", "why?"},
                     {"model_index", index},
                     {"model_preference", "One is left-8b"}});
  };
  const http::Answer one = Ask("POST", "/prompt", prompt(0));
  const http::Answer other = Ask("POST", "/prompt", prompt(1));
  ASSERT_TRUE(one.pushed && other.pushed);
  ASSERT_EQ(host_.asked.size(), 2U);
  CompleteBoth();
  EXPECT_EQ(Stream(one), std::string("\"answer A\"\0", 11));
  EXPECT_EQ(Stream(other), std::string("\"answer B\"\0", 11));
  const Json voted =
      AskJson("POST", "/response_vote", R"({"request_id": "0a1b2c3d-duel", "victory_index": 1})");
  EXPECT_EQ(voted["energy_consumptions"], Json({10.125, 50.25}));
  EXPECT_EQ(voted["model_names"], Json({"Model A", "Model B"}));
  const Json weighed =
      AskJson("POST", "/energy_vote", R"({"request_id": "0a1b2c3d-duel", "is_worth": true})");
  EXPECT_EQ(weighed["model_names"],
            Json({host_.asked[0].question.model, host_.asked[1].question.model}));
}

TEST_F(ColosseumApiTest, TheReferencesMistakesHaveTheirStatuses) {
  EXPECT_TRUE(AskJson("POST", "/prompt", R"({"prompt": "x"})", 422).contains("detail"));
  AskJson("POST", "/prompt", R"({"request_id": "short", "prompt": "x", "model_index": 0})", 422);
  AskJson("POST", "/prompt", R"({"request_id": "long-enough", "prompt": "x", "model_index": 2})",
          422);
  AskJson("POST", "/prompt", R"({"request_id": "long-enough", "prompt": "x", "model_index": 0.5})",
          422);
  AskJson("POST", "/response_vote", R"({"request_id": "long-enough", "victory_index": 0.9})", 422);
  AskJson("POST", "/response_vote", R"({"request_id": "long-enough", "victory_index": 0})", 404);
  const std::string body =
      R"({"request_id": "long-enough", "prompt": "x", "model_index": 0, "model_preference": null})";
  const http::Answer stream = Ask("POST", "/prompt", body);
  host_.End(0, Error{ErrorCode::kUnavailable, "secret"});
  EXPECT_EQ(Stream(stream), "");
  EXPECT_TRUE(cut_);
  AskJson("POST", "/response_vote", R"({"request_id": "long-enough", "victory_index": 0})", 410);
}

TEST_F(ColosseumApiTest, AReferenceVoteAfterTenMinutesIsGone) {
  Ask("POST", "/prompt", R"({"request_id": "long-enough", "prompt": "x", "model_index": 0})");
  CompleteBoth();
  clock_.Advance(std::chrono::minutes(11));
  AskJson("POST", "/response_vote", R"({"request_id": "long-enough", "victory_index": 0})", 410);
}

TEST_F(ColosseumApiTest, TheDocumentNamesEveryRoute) {
  const Json document = AskJson("GET", "/openapi.json");
  for (const http::Route& route : api_.router().routes())
    EXPECT_TRUE(document["paths"].contains(std::string(route.pattern))) << route.pattern;
  for (const auto& [path, operations] : document["paths"].items())
    for (const auto& [method, operation] : operations.items())
      EXPECT_FALSE(operation["summary"].get<std::string>().empty()) << path << method;
  EXPECT_EQ(Ask("GET", "/healthz").status, 200);
  EXPECT_EQ(Ask("GET", "/readyz").status, 200);
}

}  // namespace colosseum_api_test
}  // namespace zeus::colosseum
