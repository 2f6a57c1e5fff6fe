#include "zeus/inference/server/api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "zeus/base/json.h"
#include "zeus/http/client.h"
#include "zeus/http/server.h"

// The simulated server as clients see it, on a node of this process whose time runs 50 times as
// fast as ours.
namespace zeus::inference {
namespace {

using ::testing::HasSubstr;

struct ServerSetup {
  ServerFaults faults{};
  std::optional<std::uint64_t> kv_tokens{};
  InferenceApi::Truth truth = InferenceApi::Truth::kShown;
};

class InferenceApiTest : public ::testing::Test {
 protected:
  void Start(const ServerSetup& setup = {}) {
    auto node = sim::SharedNode::CreatePrivate(
        {.gpus = {sim::FindGpuModel("H100").value()}, .seed = 1, .time_scale = 50, .ambient = {}},
        clock_);
    ASSERT_TRUE(node.ok());
    node_ = std::make_unique<sim::SharedNode>(std::move(node).value());
    auto engine = ServedEngine::Create(
        *sim::FindLanguageModel("llama-3.1-8b").value(), *node_, {0}, clock_,
        {.model_name = "llama", .engine = {.kv_tokens = setup.kv_tokens}, .faults = setup.faults});
    ASSERT_TRUE(engine.ok()) << engine.error().message;
    engine_ = std::move(engine).value();
    api_ =
        InferenceApi::Create({.model_name = "llama", .truth = setup.truth, .text_from = text_from_},
                             *engine_, clock_)
            .value();
    server_ = http::Server::Start({.listen = "127.0.0.1:0"}, *api_, counts_, clock_).value();
    client_ = http::Client::Create({.url = server_->url(), .keep_connection = true}).value();
  }

  // The engine must not push into a server that is gone.
  void TearDown() override {
    if (server_) server_->BeginShutdown();
    if (server_) (void)server_->WaitForShutdown(Seconds(5));
    if (engine_) engine_->Stop();
    server_.reset();
  }

  http::Reply Post(const std::string& path, const Json& body, const std::string& name = "") {
    http::Call call{.method = http::Method::kPost, .path = path, .body = body.dump()};
    if (!name.empty()) call.headers.emplace_back("X-Zeus-Request", name);
    auto reply = client_->Send(call);
    EXPECT_TRUE(reply.ok()) << reply.error().message;
    return reply.ok() ? reply.value() : http::Reply{};
  }
  Json Get(const std::string& path) {
    return ParseJson(client_->Send({.path = path}).value().body).value();
  }

  static Json Chat(unsigned tokens, bool stream) {
    return {{"model", "llama"},
            {"messages", {{{"role", "user"}, {"content", "one two three"}}}},
            {"max_tokens", tokens},
            {"ignore_eos", true},
            {"stream", stream}};
  }

  static std::vector<std::string> Events(const std::string& body) {
    std::vector<std::string> events;
    std::size_t begin = 0;
    for (std::size_t end = body.find("\n\n"); end != std::string::npos;
         end = body.find("\n\n", begin)) {
      events.push_back(body.substr(begin, end - begin));
      begin = end + 2;
    }
    EXPECT_EQ(begin, body.size());
    return events;
  }

  SystemClock clock_;
  std::string text_from_;
  std::unique_ptr<sim::SharedNode> node_;
  std::unique_ptr<ServedEngine> engine_;
  std::unique_ptr<InferenceApi> api_;
  http::ConnectionCounts counts_;
  std::unique_ptr<http::Server> server_;
  std::unique_ptr<http::Client> client_;
};

TEST_F(InferenceApiTest, AnswersAChatAtOnce) {
  Start();
  const Json answer = ParseJson(Post("/v1/chat/completions", Chat(20, false)).body).value();
  EXPECT_EQ(answer["object"], "chat.completion");
  EXPECT_EQ(answer["usage"]["prompt_tokens"], 3);
  EXPECT_EQ(answer["usage"]["completion_tokens"], 20);
  EXPECT_EQ(answer["choices"][0]["finish_reason"], "length");
  EXPECT_GE(CountTokens(answer["choices"][0]["message"]["content"].get<std::string>()), 20U);
}

TEST_F(InferenceApiTest, StreamHasAnEventPerTokenThenUsageThenDone) {
  Start();
  Json body = Chat(10, true);
  body["stream_options"] = {{"include_usage", true}};
  const auto events = Events(Post("/v1/chat/completions", body).body);
  ASSERT_EQ(events.size(), 13U);  // Role, ten tokens, usage, the end.
  EXPECT_THAT(events[0], HasSubstr("\"role\":\"assistant\""));
  EXPECT_THAT(events[1], HasSubstr("\"content\":\""));
  EXPECT_THAT(events[10], HasSubstr("\"finish_reason\":\"length\""));
  const Json usage = ParseJson(events[11].substr(6)).value();
  EXPECT_TRUE(usage["choices"].empty());
  EXPECT_EQ(usage["usage"]["completion_tokens"], 10);
  EXPECT_EQ(events[12], "data: [DONE]");
  // The connection goes on after a stream.
  EXPECT_EQ(Get("/healthz")["status"], "ok");
}

TEST_F(InferenceApiTest, TextCompletionsAndSeveralSequences) {
  Start();
  const Json answer =
      ParseJson(Post("/v1/completions",
                     {{"prompt", {1, 2, 3, 4}}, {"max_tokens", 5}, {"ignore_eos", true}, {"n", 2}})
                    .body)
          .value();
  EXPECT_EQ(answer["choices"].size(), 2U);
  EXPECT_NE(answer["choices"][0]["text"], answer["choices"][1]["text"]);
  EXPECT_EQ(answer["usage"]["completion_tokens"], 10);
  EXPECT_EQ(answer["usage"]["prompt_tokens"], 4);
}

TEST_F(InferenceApiTest, EmbeddingsHaveOnePerInput) {
  Start();
  const Json answer = ParseJson(Post("/v1/embeddings", {{"input", {"a b", "c"}}}).body).value();
  EXPECT_EQ(answer["data"].size(), 2U);
  EXPECT_EQ(answer["usage"]["prompt_tokens"], 3);
}

TEST_F(InferenceApiTest, OllamaGetsLinesWithTheCountsInTheLast) {
  Start();
  const Json chat = {{"model", "llama"},
                     {"messages", {{{"role", "user"}, {"content", "one two three"}}}},
                     {"options", {{"num_predict", 4}, {"temperature", 0}}}};
  const http::Reply reply = Post("/api/chat", chat, "r-1");
  std::vector<Json> lines;
  std::istringstream text(reply.body);
  for (std::string line; std::getline(text, line);) lines.push_back(ParseJson(line).value());
  const unsigned tokens = Get("/zeus/truth/r-1")["output_tokens"];
  ASSERT_EQ(lines.size(), tokens + 1);
  EXPECT_LE(tokens, 4U);
  EXPECT_EQ(lines[0]["message"]["role"], "assistant");
  EXPECT_EQ(lines[0]["done"], false);
  EXPECT_EQ(lines.back()["done"], true);
  EXPECT_EQ(lines.back()["prompt_eval_count"], 3);
  EXPECT_EQ(lines.back()["eval_count"], tokens);
  EXPECT_GT(lines.back()["total_duration"], lines.back()["eval_duration"]);

  const Json whole =
      ParseJson(Post("/api/generate", {{"prompt", "one two"}, {"stream", false}}).body).value();
  EXPECT_EQ(whole["done"], true);
  EXPECT_GE(CountTokens(whole["response"].get<std::string>()), whole["eval_count"]);
  EXPECT_EQ(Get("/api/tags")["models"][0]["name"], "llama");
  const http::Reply missing =
      Post("/api/chat", {{"model", "other"}, {"messages", chat["messages"]}});
  EXPECT_EQ(missing.status, 404);
  EXPECT_THAT(ParseJson(missing.body).value()["error"].get<std::string>(), HasSubstr("use llama"));
  EXPECT_EQ(Post("/api/generate", {{"prompt", "one"}, {"options", 1}}).status, 400);
}

TEST_F(InferenceApiTest, TruthIsThereWhenTheAnswerIsAndAddsUp) {
  Start();
  double sum = 0;
  for (const bool stream : {false, true}) {
    const std::string name = stream ? "r-2" : "r-1";
    Post("/v1/chat/completions", Chat(30, stream), name);
    const Json truth = Get("/zeus/truth/" + name);
    EXPECT_EQ(truth["output_tokens"], 30);
    EXPECT_NEAR(truth["prefill_joules"].get<double>() + truth["decode_joules"].get<double>(),
                truth["energy_joules"].get<double>(), 1e-9);
    sum += truth["energy_joules"].get<double>();
  }
  const Json accounts = Get("/zeus/truth");
  EXPECT_NEAR(accounts["prefill_joules"].get<double>() + accounts["decode_joules"].get<double>(),
              sum, 1e-9 * sum);
  EXPECT_EQ(client_->Send({.path = "/zeus/truth/none"}).value().status, 404);
}

TEST_F(InferenceApiTest, TruthIsHiddenUnlessAskedFor) {
  Start({.truth = InferenceApi::Truth::kHidden});
  Post("/v1/chat/completions", Chat(3, false), "r-1");
  EXPECT_EQ(client_->Send({.path = "/zeus/truth/r-1"}).value().status, 404);
}

TEST_F(InferenceApiTest, MetricsHaveTheNamesOfVllm) {
  Start();
  Post("/v1/chat/completions", Chat(30, false));
  const std::string text = client_->Send({.path = "/metrics"}).value().body;
  EXPECT_THAT(text, HasSubstr("vllm:generation_tokens_total{model_name=\"llama\"} 30"));
  EXPECT_THAT(text, HasSubstr("vllm:prompt_tokens_total{model_name=\"llama\"} 3"));
  EXPECT_THAT(text, HasSubstr("vllm:num_requests_running"));
  EXPECT_THAT(text, HasSubstr("vllm:num_requests_waiting"));
  EXPECT_THAT(text, HasSubstr("vllm:kv_cache_usage_perc"));
  EXPECT_THAT(text, HasSubstr("vllm:time_to_first_token_seconds_count{model_name=\"llama\"} 1"));
  EXPECT_THAT(text, HasSubstr("vllm:inter_token_latency_seconds_count{model_name=\"llama\"} 29"));
}

TEST_F(InferenceApiTest, MistakesGetASentence) {
  Start({.kv_tokens = 100});
  EXPECT_EQ(Post("/v1/chat/completions", {{"messages", 1}}).status, 400);
  Json other = Chat(3, false);
  other["model"] = "gpt-17";
  const http::Reply missing = Post("/v1/chat/completions", other);
  EXPECT_EQ(missing.status, 404);
  EXPECT_THAT(missing.body, HasSubstr("llama"));
  const http::Reply large = Post("/v1/chat/completions", Chat(200, true));
  EXPECT_EQ(large.status, 400);
  EXPECT_THAT(large.body, HasSubstr("KV cache holds 100"));
  EXPECT_EQ(client_->Send({.path = "/v1/chat/completions"}).value().status, 405);
  EXPECT_EQ(client_->Send({.path = "/nothing"}).value().status, 404);
}

TEST_F(InferenceApiTest, BadHabitsCanBeSwitchedOn) {
  Start({.faults = {
             .tokens_per_event = 4, .jitter = Seconds(0.05), .no_usage = true, .no_done = true}});
  Json body = Chat(10, true);
  body["stream_options"] = {{"include_usage", true}};
  const auto events = Events(Post("/v1/chat/completions", body).body);
  EXPECT_EQ(events.size(), 4U);  // Role, and 4 + 4 + 2 tokens.
  EXPECT_THAT(events.back(), HasSubstr("finish_reason\":\"length"));
  EXPECT_FALSE(
      ParseJson(Post("/v1/chat/completions", Chat(3, false)).body).value().contains("usage"));
}

TEST_F(InferenceApiTest, ErrorInTheMidstEndsTheStreamAndTheRequest) {
  Start({.faults = {.error = 1.0}});
  const auto events = Events(Post("/v1/chat/completions", Chat(50, true), "r-1").body);
  EXPECT_THAT(events.back(), HasSubstr("\"error\""));
  EXPECT_LT(events.size(), 53U);
}

TEST_F(InferenceApiTest, BrokenConnectionIsNoticedByTheClient) {
  Start({.faults = {.disconnect = 1.0}});
  const auto reply = client_->Send({.method = http::Method::kPost,
                                    .path = "/v1/chat/completions",
                                    .body = Chat(50, true).dump()});
  EXPECT_FALSE(reply.ok());
}

TEST_F(InferenceApiTest, WordsComeFromAnotherServer) {
  Start();
  // The words of this server become those of another one.
  text_from_ = server_->url();
  auto api =
      InferenceApi::Create({.model_name = "words", .text_from = text_from_}, *engine_, clock_);
  ASSERT_TRUE(api.ok());
  http::ConnectionCounts counts;
  const auto server =
      http::Server::Start({.listen = "127.0.0.1:0"}, *api.value(), counts, clock_).value();
  const auto client = http::Client::Create({.url = server->url()}).value();
  Json body = Chat(12, false);
  body["model"] = "words";
  const auto reply = client->Send(
      {.method = http::Method::kPost, .path = "/v1/chat/completions", .body = body.dump()});
  ASSERT_TRUE(reply.ok());
  const Json answer = ParseJson(reply.value().body).value();
  EXPECT_EQ(answer["usage"]["completion_tokens"], 12);
  EXPECT_FALSE(InferenceApi::Create({.text_from = "nonsense"}, *engine_, clock_).ok());
  engine_->Stop();
}

}  // namespace
}  // namespace zeus::inference
