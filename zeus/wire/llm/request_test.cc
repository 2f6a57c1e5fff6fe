#include "zeus/wire/llm/request.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace zeus::llm {
namespace request_test {

std::optional<RequestFacts> Post(std::string_view target, std::string_view body) {
  return InspectRequest("POST", target, "application/json", body);
}

constexpr std::string_view kChat =
    R"({"model":"m","messages":[{"role":"user","content":"12345"}]})";

TEST(LlmRequestTest, PathsTellTheDialect) {
  const std::string prompt = R"({"prompt":"a","messages":[],"inputs":"a","input":"a"})";
  const std::vector<std::pair<std::string, Dialect>> cases{
      {"/v1/chat/completions", Dialect::kOpenAiChat},
      {"/openai/v1/chat/completions?api-version=1", Dialect::kOpenAiChat},
      {"/chat/completions/", Dialect::kOpenAiChat},
      {"/v1/completions", Dialect::kOpenAiText},
      {"/api/chat", Dialect::kOllama},
      {"/api/generate", Dialect::kOllama},
      {"/completion", Dialect::kLlamaCpp},
      {"/infill", Dialect::kLlamaCpp},
      {"/generate", Dialect::kTgi},
      {"/generate_stream", Dialect::kTgi},
      {"/v1/messages", Dialect::kAnthropic},
      {"/v1/responses", Dialect::kOpenAiResponses},
      {"/v1/embeddings", Dialect::kEmbeddings},
      {"/api/embed", Dialect::kEmbeddings},
      {"/v1/rerank", Dialect::kEmbeddings},
  };
  for (const auto& [target, dialect] : cases) {
    const auto facts = Post(target, prompt);
    ASSERT_TRUE(facts) << target;
    EXPECT_EQ(ToText(facts->dialect), ToText(dialect)) << target;
  }
}

TEST(LlmRequestTest, OtherRequestsAreNotMetered) {
  EXPECT_FALSE(InspectRequest("GET", "/v1/chat/completions", "", kChat));
  EXPECT_FALSE(InspectRequest("POST", "/v1/chat/completions", "multipart/form-data", kChat));
  EXPECT_TRUE(InspectRequest("POST", "/v1/chat/completions", "text/plain", kChat));
  for (const char* target : {"/v1/models", "/", "", "/v1/messages/count_tokens", "/tokenize",
                             "/v1/chat/completionsx", "/v1/audio/transcriptions", "?/completion"})
    EXPECT_FALSE(Post(target, kChat)) << target;
  for (const char* body : {"", "{", "[]", "null", "model=m", R"({"model":"m"})", R"({"messages":)",
                           R"({"messages":null})", R"({"messages":[]} x)", "\xff\xfe"})
    EXPECT_FALSE(Post("/v1/chat/completions", body)) << body;
}

TEST(LlmRequestTest, ModelStreamAndUsageAreRead) {
  const auto plain = Post("/v1/chat/completions", kChat);
  EXPECT_EQ(plain->model, "m");
  EXPECT_FALSE(plain->streamed);
  EXPECT_FALSE(plain->usage_wanted);
  EXPECT_EQ(plain->sequences, 1U);
  EXPECT_FALSE(plain->most_output_tokens);
  const auto streamed = Post("/v1/chat/completions",
                             R"({ "stream" : true, "model":"org\/m\u00e9", "max_tokens": 7,
      "stream_options": {"x":1, "include_usage": true}, "messages" : [] })");
  EXPECT_EQ(streamed->model, "org/m\xc3\xa9");
  EXPECT_TRUE(streamed->streamed);
  EXPECT_TRUE(streamed->usage_wanted);
  EXPECT_EQ(streamed->most_output_tokens, 7);
}

TEST(LlmRequestTest, OllamaStreamsUnlessToldOtherwise) {
  EXPECT_TRUE(Post("/api/chat", kChat)->streamed);
  EXPECT_FALSE(Post("/api/generate", R"({"prompt":"a","stream":false})")->streamed);
  EXPECT_TRUE(Post("/generate_stream", R"({"inputs":"a"})")->streamed);
  EXPECT_FALSE(Post("/generate", R"({"inputs":"a","stream":true})")->streamed);
  EXPECT_FALSE(Post("/v1/embeddings", R"({"input":"a","stream":true})")->streamed);
}

TEST(LlmRequestTest, SequencesArePromptsTimesChoices) {
  const auto sequences = [](std::string_view target, std::string_view body) {
    return Post(target, body)->sequences;
  };
  EXPECT_EQ(sequences("/v1/completions", R"({"prompt":"a","n":2,"best_of":4})"), 4U);
  EXPECT_EQ(sequences("/v1/completions", R"({"prompt":["a","b","c"],"n":2})"), 6U);
  EXPECT_EQ(sequences("/v1/completions", R"({"prompt":[1,2,3]})"), 1U);
  EXPECT_EQ(sequences("/v1/completions", R"({"prompt":[[1,2],[3]]})"), 2U);
  EXPECT_EQ(sequences("/completion", R"({"prompt":[1,"a",3]})"), 1U);
  EXPECT_EQ(sequences("/generate", R"({"inputs":"a","parameters":{"best_of":3}})"), 3U);
  EXPECT_EQ(sequences("/v1/embeddings", R"({"input":["a","b"]})"), 2U);
  EXPECT_EQ(sequences("/v1/responses", R"({"input":[{"content":"a"},{"content":"b"}]})"), 1U);
  EXPECT_EQ(Post("/v1/completions", R"({"prompt":["a","b"],"n":3})")->prompts, 2U);
  EXPECT_EQ(sequences("/v1/completions", R"({"prompt":"a","n":-1})"), 1U);
  EXPECT_EQ(sequences("/v1/completions", R"({"prompt":"a","n":1e99})"), 4096U);
  EXPECT_EQ(sequences("/v1/completions", R"({"prompt":[],"n":null})"), 1U);
}

TEST(LlmRequestTest, ThePromptIsItsTextWithoutPictures) {
  const auto bytes = [](std::string_view target, std::string_view body) {
    return Post(target, body)->prompt_bytes;
  };
  EXPECT_EQ(bytes("/v1/chat/completions", kChat), 5);
  EXPECT_EQ(Post("/v1/chat/completions", kChat)->EstimatedPromptTokens(), 1.25);
  EXPECT_EQ(bytes("/v1/chat/completions",
                  R"({"messages":[{"role":"system","content":"123"},{"role":"user","content":[
      {"type":"text","text":"4567"},
      {"type":"image_url","image_url":{"url":"data:image/png;base64,AAAAAAAAAAAA"}}]}]})"),
            7);
  EXPECT_EQ(bytes("/v1/chat/completions", R"({"messages":[],"tools": [{"a":1}] })"), 9);
  EXPECT_EQ(bytes("/v1/completions", R"({"prompt":[1,2,3]})"), 12);
  EXPECT_EQ(bytes("/v1/messages", R"({"system":"12","messages":[{"content":"34"}]})"), 4);
  EXPECT_EQ(bytes("/api/generate", R"({"prompt":"12","system":"3","context":[5,6]})"), 11);
  EXPECT_EQ(bytes("/v1/rerank", R"({"query":"12","documents":["345",{"text":"6"}]})"), 6);
}

TEST(LlmRequestTest, DeepNestingIsHarmless) {
  const std::string deep(1'000'000, '[');
  EXPECT_FALSE(Post("/v1/completions", R"({"prompt":)" + deep));
  EXPECT_TRUE(Post("/v1/completions", R"({"prompt":)" + deep + std::string(1'000'000, ']') + "}"));
}

std::optional<std::string> Asked(std::string_view body) {
  const auto facts = Post("/v1/chat/completions", body);
  return facts ? WithUsageAsked(*facts, body) : std::nullopt;
}

TEST(LlmRequestTest, UsageIsAskedForAndNothingElseChanges) {
  EXPECT_EQ(Asked(R"({ "messages":[], "stream": true })"),
            R"({ "messages":[], "stream": true ,"stream_options":{"include_usage":true}})");
  EXPECT_EQ(Asked(R"({"stream_options": null,"messages":[],"stream":true})"),
            R"({"stream_options": {"include_usage":true},"messages":[],"stream":true})");
  EXPECT_EQ(Asked(R"({"stream_options":{},"messages":[],"stream":true})"),
            R"({"stream_options":{"include_usage":true},"messages":[],"stream":true})");
  EXPECT_EQ(Asked(R"({"stream_options":{"a":1 },"messages":[],"stream":true})"),
            R"({"stream_options":{"a":1 ,"include_usage":true},"messages":[],"stream":true})");
  EXPECT_EQ(
      Asked(R"({"messages":[],"stream":true,"stream_options":{"include_usage": false, "a":1}})"),
      R"({"messages":[],"stream":true,"stream_options":{"include_usage": true, "a":1}})");
}

TEST(LlmRequestTest, UsageIsNotAskedForWhereItCannotOrNeedNotBe) {
  EXPECT_FALSE(Asked(R"({"messages":[]})"));
  EXPECT_FALSE(Asked(R"({"messages":[],"stream":false})"));
  EXPECT_FALSE(Asked(R"({"messages":[],"stream":true,"stream_options":{"include_usage":true}})"));
  EXPECT_FALSE(Asked(R"({"messages":[],"stream":true,"stream_options":5})"));
  EXPECT_FALSE(Asked(R"({"messages":[],"stream":true,"stream_options":{},"stream_options":{}})"));
  EXPECT_FALSE(Asked(
      R"({"messages":[],"stream":true,"stream_options":{"include_usage":0,"include_usage":0}})"));
  const auto ollama = Post("/api/chat", kChat);
  EXPECT_FALSE(WithUsageAsked(*ollama, kChat));
}

}  // namespace request_test
}  // namespace zeus::llm
