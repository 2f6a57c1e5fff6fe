#include "zeus/wire/llm/response_filter.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "zeus/base/json.h"
#include "zeus/wire/llm/testing/sample_responses.h"

namespace zeus::llm {
namespace response_filter_test {

using testing::RecordingListener;
using testing::SampleResponse;
using testing::SampleResponses;

ResponsePlan Plan(const SampleResponse& sample, Annotate annotate) {
  return {.content_type = sample.content_type, .content_encoding = "", .annotate = annotate};
}

// Returns what a client gets when the body arrives in pieces of this size.
std::string Filter(ResponseFilter& filter, std::string_view body, std::size_t piece) {
  std::string out;
  for (std::size_t at = 0; at < body.size(); at += piece) filter.Feed(body.substr(at, piece), out);
  filter.Finish(out);
  return out;
}

void ExpectFacts(const SampleResponse& sample, const ResponseFacts& facts) {
  EXPECT_EQ(facts.seen_tokens, sample.seen_tokens);
  EXPECT_EQ(facts.prompt_tokens, sample.prompt_tokens);
  EXPECT_EQ(facts.cached_tokens, sample.cached_tokens);
  EXPECT_EQ(facts.output_tokens, sample.output_tokens);
  EXPECT_EQ(facts.times.queue, sample.queue);
  EXPECT_EQ(facts.times.prefill, sample.prefill);
  EXPECT_EQ(facts.times.decode, sample.decode);
  EXPECT_EQ(facts.finish_reasons, sample.finish_reasons);
  EXPECT_EQ(facts.error, "");
}

TEST(ResponseFilterTest, EveryDialectIsSeenAndAnnotatedWhateverTheSplit) {
  for (const SampleResponse& sample : SampleResponses()) {
    for (const std::size_t piece :
         {std::size_t{1}, std::size_t{2}, std::size_t{7}, std::size_t{1} << 20}) {
      SCOPED_TRACE(sample.name + " in pieces of " + std::to_string(piece));
      RecordingListener listener;
      ResponseFilter filter(sample.Request(), Plan(sample, Annotate::kAll), listener);
      EXPECT_EQ(Filter(filter, sample.Body(), piece), sample.Annotated());
      ExpectFacts(sample, filter.facts());
      EXPECT_EQ(filter.blind_reason(), "");
      EXPECT_TRUE(filter.changes_length());
    }
  }
}

TEST(ResponseFilterTest, WithoutAnnotationEveryByteLeavesAtOnceAsItCame) {
  for (const SampleResponse& sample : SampleResponses()) {
    SCOPED_TRACE(sample.name);
    RecordingListener listener;
    ResponseFilter filter(sample.Request(), Plan(sample, Annotate::kNone), listener);
    std::string out;
    const std::string body = sample.Body();
    for (std::size_t at = 0; at < body.size(); at += 3) {
      filter.Feed(std::string_view(body).substr(at, 3), out);
      EXPECT_EQ(out, body.substr(0, at + 3));
    }
    filter.Finish(out);
    EXPECT_EQ(out, body);
    ExpectFacts(sample, filter.facts());
    EXPECT_FALSE(filter.changes_length());
    EXPECT_FALSE(filter.holds_body());
    EXPECT_TRUE(listener.asked_with().empty());
  }
}

TEST(ResponseFilterTest, TheListenerHearsOfTheTokensThatWereSeen) {
  for (const SampleResponse& sample : SampleResponses()) {
    SCOPED_TRACE(sample.name);
    RecordingListener listener;
    ResponseFilter filter(sample.Request(), Plan(sample, Annotate::kAll), listener);
    (void)Filter(filter, sample.Body(), 1000);
    double heard = 0;
    for (const double tokens : listener.tokens()) heard += tokens;
    EXPECT_EQ(heard, filter.holds_body() ? 0 : sample.seen_tokens);
    ASSERT_EQ(listener.asked_with().size(), sample.energy_asked);
    if (sample.energy_asked == 0) continue;
    EXPECT_EQ(listener.asked_with().back().output_tokens, sample.output_tokens);
    EXPECT_EQ(listener.asked_with().back().prompt_tokens, sample.prompt_tokens);
  }
}

TEST(ResponseFilterTest, WithoutEnergyTheResponseStaysAsItIs) {
  for (const SampleResponse& sample : SampleResponses()) {
    RecordingListener listener(std::nullopt);
    ResponseFilter filter(sample.Request(), Plan(sample, Annotate::kAll), listener);
    EXPECT_EQ(Filter(filter, sample.Body(), 5), sample.Body()) << sample.name;
  }
}

TEST(ResponseFilterTest, ABrokenStreamEndsWithTheBytesThatWereHeld) {
  for (const SampleResponse& sample : SampleResponses()) {
    const std::string body = sample.Body();
    const std::string cut = body.substr(0, body.size() / 3);
    RecordingListener listener;
    ResponseFilter filter(sample.Request(), Plan(sample, Annotate::kAll), listener);
    std::string out;
    filter.Feed(cut, out);
    filter.Abandon(out);
    EXPECT_EQ(out, cut) << sample.name;
  }
}

TEST(ResponseFilterTest, CountsAreEstimatedUntilTheServerHasCounted) {
  const SampleResponse sample = SampleResponses().front();
  RecordingListener listener;
  ResponseFilter filter(sample.Request(), Plan(sample, Annotate::kAll), listener);
  std::string out;
  const std::string body = sample.Body();
  const std::size_t usage = body.find(R"("choices":[])");
  filter.Feed(std::string_view(body).substr(0, usage), out);
  EXPECT_TRUE(filter.facts().estimated());
  EXPECT_EQ(filter.facts().OutputTokens(), 2);
  EXPECT_EQ(filter.facts().PromptTokens(sample.Request()), 2.5);
  filter.Feed(std::string_view(body).substr(usage), out);
  EXPECT_FALSE(filter.facts().estimated());
  EXPECT_EQ(filter.facts().OutputTokens(), 3);
  EXPECT_EQ(filter.facts().PromptTokens(sample.Request()), 24);
}

class ResponseBodyTest : public ::testing::Test {
 protected:
  std::string Annotate(std::string_view body, ResponsePlan plan = {}) {
    if (plan.content_type.empty()) plan.content_type = "application/json";
    RequestFacts request;
    request.dialect = Dialect::kOpenAiChat;
    ResponseFilter filter(request, plan, listener_);
    std::string out = Filter(filter, body, 10);
    reason_ = filter.blind_reason();
    facts_ = filter.facts();
    return out;
  }

  const std::string member_ = "\"energy\":" + ToJsonText(testing::SampleNote());
  RecordingListener listener_{};
  std::string reason_{};
  ResponseFacts facts_{};
};

TEST_F(ResponseBodyTest, EmptyObjectsGetTheirFirstMember) {
  EXPECT_EQ(Annotate("{}"), "{" + member_ + "}");
  EXPECT_EQ(Annotate(" { \"usage\" : { } }\n"),
            " { \"usage\" : { " + member_ + "} ," + member_ + "}\n");
}

TEST_F(ResponseBodyTest, AByteOrderMarkAndBlanksStay) {
  EXPECT_EQ(Annotate("\xEF\xBB\xBF{\"a\":1}\r\n"), "\xEF\xBB\xBF{\"a\":1," + member_ + "}\r\n");
}

TEST_F(ResponseBodyTest, EnergyThatIsThereAlreadyIsKept) {
  EXPECT_EQ(Annotate(R"({"usage":{"energy":{"energy_joules":1}},"energy":2})"),
            R"({"usage":{"energy":{"energy_joules":1}},"energy":2})");
  EXPECT_EQ(Annotate(R"({"usage":{"energy":null}})"),
            R"({"usage":{"energy":null},)" + member_ + "}");
}

TEST_F(ResponseBodyTest, TextThatIsNoJsonObjectStaysAsItIs) {
  for (const std::string body :
       {"", "null", "[]", "[{\"usage\":{}}]", "{", "{\"usage\":{}", "{\"a\":}", "{\"a\":1}}", "{]",
        "<html>", "{\"a\" 1}", "\"usage\":{}", "{\"usage\":{\"x\":}}", "{\"a\":\"b}"})
    EXPECT_EQ(Annotate(body), body);
}

TEST_F(ResponseBodyTest, BytesThatAreNoUtf8Stay) {
  EXPECT_EQ(Annotate("{\"a\":\"\xff\"}"), "{\"a\":\"\xff\"," + member_ + "}");
}

TEST_F(ResponseBodyTest, AnErrorStaysAsItIs) {
  const std::string body = R"({"error":{"message":"no such \"model\"","code":404}})";
  EXPECT_EQ(Annotate(body), body);
  EXPECT_EQ(facts_.error, "no such \"model\"");
}

TEST_F(ResponseBodyTest, ImpossibleCountsAreIgnored) {
  (void)Annotate(R"({"usage":{"prompt_tokens":-3,"completion_tokens":"many"},)"
                 R"("timings":{"prompt_ms":-1,"predicted_n":1e999}})");
  EXPECT_FALSE(facts_.prompt_tokens);
  EXPECT_FALSE(facts_.output_tokens);
  EXPECT_FALSE(facts_.times.prefill);
}

TEST_F(ResponseBodyTest, OtherResponsesPassWithAReason) {
  const std::string body = R"({"usage":{}})";
  EXPECT_EQ(Annotate(body, {.status = 429, .content_type = "", .content_encoding = ""}), body);
  EXPECT_EQ(reason_, "the server answered with status 429");
  EXPECT_EQ(Annotate(body, {.content_type = "", .content_encoding = "GZIP"}), body);
  EXPECT_EQ(reason_, "the response is compressed (gzip)");
  EXPECT_EQ(Annotate(body, {.content_type = "text/html", .content_encoding = ""}), body);
  EXPECT_EQ(reason_, "the response is text/html, neither JSON nor a stream of events");
  EXPECT_NE(Annotate(body, {.content_type = "", .content_encoding = "identity"}), body);
  EXPECT_EQ(reason_, "");
}

TEST_F(ResponseBodyTest, ABodyAboveTheLimitPassesUnchanged) {
  const std::string body = R"({"usage":{"prompt_tokens":3},"a":")" + std::string(100, 'x') + "\"}";
  const ResponsePlan plan{.content_type = "", .content_encoding = "", .largest_body = 100};
  EXPECT_EQ(Annotate(body, plan), body);
  EXPECT_EQ(reason_, "the response is too large to be examined");
}

TEST(ResponseFilterTest, ALineAboveTheLimitPassesUnchangedAndIsATokenStill) {
  RequestFacts request;
  request.dialect = Dialect::kOllama;
  request.streamed = true;
  const std::string large = R"({"done":false,"response":")" + std::string(1 << 20, 'x') + "\"}\n";
  const std::string last = R"({"done":true,"eval_count":2})";
  for (const std::size_t piece : {std::size_t{999}, std::size_t{4} << 20}) {
    RecordingListener listener;
    ResponseFilter filter(
        request,
        {.content_type = "application/x-ndjson", .content_encoding = "", .largest_event = 1000},
        listener);
    EXPECT_EQ(Filter(filter, large + last, piece),
              large + last.substr(0, last.size() - 1) +
                  ",\"energy\":" + ToJsonText(testing::SampleNote()) + "}");
    EXPECT_EQ(filter.facts().seen_tokens, 1);
  }
}

}  // namespace response_filter_test
}  // namespace zeus::llm
