#include "zeus/inference/server/completion_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeus/base/json.h"

namespace zeus::inference {
namespace {

using ::testing::HasSubstr;

TEST(CountTokensTest, ShortWordsAreOneTokenEach) {
  EXPECT_EQ(CountTokens(""), 0U);
  EXPECT_EQ(CountTokens("a bc  def\nghijk"), 4U);
  EXPECT_EQ(CountTokens("sixsix"), 2U);
}

TEST(CompletionRequestTest, ReadsAChat) {
  const auto request = ParseCompletionRequest(Endpoint::kChat, R"({
    "model": "m", "messages": [{"role": "system", "content": "be kind"},
      {"role": "user", "content": [{"type": "text", "text": "one two"}, {"type": "image_url"}]}],
    "max_tokens": 7, "n": 3, "stream": true, "stop": ["x", ""], "ignore_eos": true,
    "stream_options": {"include_usage": true}})");
  ASSERT_TRUE(request.ok()) << request.error().message;
  EXPECT_EQ(request.value().prompt_tokens, 4U);
  EXPECT_EQ(request.value().max_tokens, 7U);
  EXPECT_EQ(request.value().sequences, 3U);
  EXPECT_TRUE(request.value().stream);
  EXPECT_TRUE(request.value().include_usage);
  EXPECT_FALSE(request.value().continuous_usage);
  EXPECT_EQ(request.value().stop, std::vector<std::string>{"x"});
}

TEST(CompletionRequestTest, TokenNumbersCountAsTheyAre) {
  EXPECT_EQ(
      ParseCompletionRequest(Endpoint::kText, R"({"prompt": [1, 2, 3]})").value().prompt_tokens,
      3U);
  EXPECT_EQ(
      ParseCompletionRequest(Endpoint::kText, R"({"prompt": [[1, 2]]})").value().prompt_tokens, 2U);
  EXPECT_EQ(
      ParseCompletionRequest(Endpoint::kText, R"({"prompt": ["a b c d"]})").value().prompt_tokens,
      4U);
}

TEST(CompletionRequestTest, InputsOfEmbeddingsAreSequences) {
  const auto request =
      ParseCompletionRequest(Endpoint::kEmbeddings, R"({"input": ["a b", "c", [1, 2, 3]]})");
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request.value().sequences, 3U);
  EXPECT_EQ(request.value().prompt_tokens, 6U);
}

TEST(CompletionRequestTest, MistakesNameTheField) {
  const auto message = [](Endpoint endpoint, std::string_view body) {
    const auto request = ParseCompletionRequest(endpoint, body);
    return request.ok() ? std::string() : request.error().message;
  };
  EXPECT_THAT(message(Endpoint::kChat, "{"), HasSubstr("JSON"));
  EXPECT_THAT(message(Endpoint::kChat, "[]"), HasSubstr("object"));
  EXPECT_THAT(message(Endpoint::kChat, "{}"), HasSubstr("messages"));
  EXPECT_THAT(message(Endpoint::kText, "{}"), HasSubstr("prompt"));
  EXPECT_THAT(message(Endpoint::kText, R"({"prompt": ["a", "b"]})"), HasSubstr("prompt"));
  EXPECT_THAT(message(Endpoint::kText, R"({"prompt": "a", "max_tokens": 0})"),
              HasSubstr("max_tokens"));
  EXPECT_THAT(message(Endpoint::kText, R"({"prompt": "a", "n": 1000})"), HasSubstr("\"n\""));
  EXPECT_THAT(message(Endpoint::kText, R"({"prompt": "a", "n": 1.5})"), HasSubstr("\"n\""));
  EXPECT_THAT(message(Endpoint::kText, R"({"prompt": "a", "stop": 1})"), HasSubstr("stop"));
  EXPECT_THAT(message(Endpoint::kText, R"({"prompt": "a", "stream": "yes"})"), HasSubstr("stream"));
  EXPECT_THAT(message(Endpoint::kEmbeddings, R"({"input": [{}]})"), HasSubstr("input"));
}

}  // namespace
}  // namespace zeus::inference
