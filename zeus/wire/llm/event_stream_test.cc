#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "zeus/wire/llm/response_filter.h"
#include "zeus/wire/llm/testing/sample_responses.h"

// The framing of server-sent events, whatever they hold.
namespace zeus::llm {
namespace event_stream_test {

using testing::RecordingListener;
using testing::Replaced;

constexpr std::string_view kToken = R"({"choices":[{"delta":{"content":"a"}}]})";
constexpr std::string_view kUsage = R"({"choices":[],"usage":{"completion_tokens":1}})";

class EventStreamTest : public ::testing::Test {
 protected:
  static RequestFacts Request() {
    RequestFacts request;
    request.streamed = true;
    return request;
  }

  // The output for a body in pieces of every size must be the same.
  std::string Filter(const std::string& body, ResponsePlan plan = {}) {
    plan.content_type = "text/event-stream";
    std::string whole;
    for (const std::size_t piece :
         {body.size() + 1, std::size_t{1}, std::size_t{2}, std::size_t{3}}) {
      RecordingListener listener;
      ResponseFilter filter(Request(), plan, listener);
      std::string out;
      for (std::size_t at = 0; at < body.size(); at += piece)
        filter.Feed(std::string_view(body).substr(at, piece), out);
      filter.Finish(out);
      if (piece > body.size()) {
        whole = out;
        facts_ = filter.facts();
      }
      EXPECT_EQ(out, whole) << "in pieces of " << piece;
      EXPECT_EQ(filter.facts().seen_tokens, facts_.seen_tokens) << "in pieces of " << piece;
    }
    return whole;
  }

  static std::string Comment(std::string_view line_end = "\n") {
    std::string comment = ": energy " + ToJsonText(testing::SampleNote());
    return comment.append(line_end).append(line_end);
  }
  static std::string Member() { return ",\"energy\":" + ToJsonText(testing::SampleNote()); }
  static std::string AnnotatedUsage() {
    return R"({"choices":[],"usage":{"completion_tokens":1)" + Member() + "}" + Member() + "}";
  }
  static std::string Data(std::string_view json) { return "data: " + std::string(json) + "\n\n"; }

  ResponseFacts facts_{};
};

TEST_F(EventStreamTest, EveryKindOfLineEndIsKept) {
  const std::string stream = Data(kToken) + Data(kUsage) + "@" + Data("[DONE]");
  for (const std::string end : {"\n", "\r\n", "\r"}) {
    const std::string body = Replaced(Replaced(stream, "@", ""), "\n", end);
    const std::string expected = Replaced(Replaced(Replaced(stream, "\n", end), "@", Comment(end)),
                                          kUsage, AnnotatedUsage());
    EXPECT_EQ(Filter(body), expected);
    EXPECT_EQ(facts_.seen_tokens, 1);
  }
}

TEST_F(EventStreamTest, MixedLineEndsAreKept) {
  const std::string head =
      "data: " + std::string(kToken) + "\r\r\n\ndata: " + std::string(kToken) + "\r\n\r";
  EXPECT_EQ(Filter(head + "data: [DONE]\n\r"), head + Comment("\n") + "data: [DONE]\n\r");
  EXPECT_EQ(facts_.seen_tokens, 2);
}

TEST_F(EventStreamTest, DataOverSeveralLinesIsOneEvent) {
  const std::string event =
      "id: 7\r\ndata: {\"choices\":[],\r\ndata:\"usage\":{\"completion_tokens\":1\r\n"
      "data\r\nretry: 5\r\ndata: @}\r\n: comment\r\ndata: @}\r\n\r\n";
  EXPECT_EQ(Filter(Replaced(event, "@", "")), Replaced(event, "@", Member()) + Comment("\r\n"));
  EXPECT_EQ(facts_.output_tokens, 1);
}

TEST_F(EventStreamTest, AByteOrderMarkIsKept) {
  EXPECT_EQ(Filter("\xEF\xBB\xBF" + Data(kUsage)),
            "\xEF\xBB\xBF" + Data(AnnotatedUsage()) + Comment());
  EXPECT_EQ(Filter("\xEF\xBB\xBF" + Data("[DONE]")), Comment() + "\xEF\xBB\xBF" + Data("[DONE]"));
}

TEST_F(EventStreamTest, CommentsLeaveAtOnce) {
  RecordingListener listener;
  ResponseFilter filter(Request(), {.content_type = "text/event-stream", .content_encoding = ""},
                        listener);
  std::string out;
  filter.Feed(": keep", out);
  EXPECT_EQ(out, ": keep");
  filter.Feed("-alive\n:\n", out);
  EXPECT_EQ(out, ": keep-alive\n:\n");
  filter.Feed("data: {", out);
  EXPECT_EQ(out, ": keep-alive\n:\n");
  filter.Feed("}\n\n", out);
  EXPECT_EQ(out, ": keep-alive\n:\ndata: {}\n\n");
}

TEST_F(EventStreamTest, TheEnergyComesBeforeAnUnfinishedEnd) {
  EXPECT_EQ(Filter(Data(kToken) + "data: [DONE]"), Data(kToken) + Comment() + "data: [DONE]");
  EXPECT_EQ(Filter("data: " + std::string(kToken) + "\n"),
            Comment() + "data: " + std::string(kToken) + "\n");
  EXPECT_EQ(facts_.seen_tokens, 1);
  EXPECT_EQ(Filter(": half a comment"), ": half a comment\n" + Comment());
  EXPECT_EQ(Filter(""), "");
}

TEST_F(EventStreamTest, TheEnergyComesOnce) {
  EXPECT_EQ(Filter(Data("[DONE]") + Data("[DONE]")), Comment() + Data("[DONE]") + Data("[DONE]"));
  EXPECT_EQ(Filter("data:[DONE]  \n\n"), Comment() + "data:[DONE]  \n\n");
}

TEST_F(EventStreamTest, AUsageEventThatTheProxyAskedForIsRemoved) {
  const std::string nulls = R"({"choices":[{"delta":{"content":"a"}}],"usage":null})";
  const std::string filtered = R"({"choices":[],"prompt_filter_results":[],"usage":null})";
  const std::string body = Data(filtered) + Data(nulls) + Data(kUsage) + Data("[DONE]");
  const std::string rest = Data(filtered) + Data(nulls);
  EXPECT_EQ(Filter(body, {.content_type = "", .content_encoding = "", .remove_usage_event = true}),
            rest + Comment() + Data("[DONE]"));
  EXPECT_EQ(facts_.output_tokens, 1);
  EXPECT_EQ(Filter(body, {.content_type = "",
                          .content_encoding = "",
                          .annotate = Annotate::kNone,
                          .remove_usage_event = true}),
            rest + Data("[DONE]"));
  EXPECT_EQ(facts_.output_tokens, 1);
  for (const std::string end : {"\r\n", "\r"})
    EXPECT_EQ(Filter(Replaced(body, "\n", end),
                     {.content_type = "", .content_encoding = "", .remove_usage_event = true}),
              Replaced(rest, "\n", end) + Comment(end) + Replaced(Data("[DONE]"), "\n", end));
}

TEST_F(EventStreamTest, EventsThatAreNotUnderstoodStayAsTheyAre) {
  for (const std::string event :
       {"data: {\"choices\":[],\"usage\":{\"completion_tokens\":1}\n\n", "data: {]\n\n",
        "data:\n\n", "data\n\n", "dat: {}\n\n", "\xff\xfe\n\n", "data: \xff{}\n\n",
        "data: {\"choices\":[],\"usage\":{\"a\":\"\xc3\x28}}\n\n", "event: x\n\n",
        "data: {\"choices\":[],\"usage\":{}} x\n\n", "data: [1,2]\n\n", "data: \"[DONE]\"\n\n"}) {
    EXPECT_EQ(Filter(event), event + Comment());
    EXPECT_EQ(facts_.seen_tokens, 0);
  }
}

TEST_F(EventStreamTest, AnErrorInTheStreamIsKept) {
  const std::string body = Data(kToken) + Data(R"({"error":{"message":"overloaded","code":503}})");
  EXPECT_EQ(Filter(body), body + Comment());
  EXPECT_EQ(facts_.error, "overloaded");
  EXPECT_EQ(facts_.seen_tokens, 1);
}

TEST_F(EventStreamTest, AnEventAboveTheLimitPassesUnchangedAndIsATokenStill) {
  const ResponsePlan plan{.content_type = "", .content_encoding = "", .largest_event = 200};
  const std::string large = Data(R"({"choices":[{"delta":{"content":")" + std::string(300, 'x') +
                                 R"("}}],"usage":{"completion_tokens":9}})");
  EXPECT_EQ(Filter(large + Data(kToken) + Data("[DONE]"), plan),
            large + Data(kToken) + Comment() + Data("[DONE]"));
  EXPECT_EQ(facts_.seen_tokens, 2);
  EXPECT_FALSE(facts_.output_tokens);
  EXPECT_EQ(Filter(large.substr(0, 250), plan), large.substr(0, 250));
  for (std::size_t size = 150; size < 170; ++size) {  // Around the limit, with every line end.
    for (const std::string end : {"\n", "\r\n", "\r"}) {
      const std::string event = Data(R"({"choices":[],"usage":{"completion_tokens":1,"x":")" +
                                     std::string(size, 'x') + "\"}}");
      (void)Filter(Replaced(event, "\n", end) + ":\n\n", plan);
    }
  }
}

TEST_F(EventStreamTest, AnEventOfAMegabyteIsExamined) {
  RecordingListener listener;
  ResponseFilter filter(Request(), {.content_type = "text/event-stream", .content_encoding = ""},
                        listener);
  const std::string event = Data(R"({"choices":[{"delta":{"content":")" +
                                 std::string(1 << 20, 'x') + R"("}}],"usage":null})");
  std::string out;
  for (std::size_t at = 0; at < event.size(); ++at)
    filter.Feed(std::string_view(event).substr(at, 1), out);
  EXPECT_EQ(out, event);
  EXPECT_EQ(filter.facts().seen_tokens, 1);
}

}  // namespace event_stream_test
}  // namespace zeus::llm
