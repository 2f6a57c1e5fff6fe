#include "zeus/colosseum/api/answer_stream.h"

#include <gtest/gtest.h>

#include <string>

#include "zeus/base/json.h"

namespace zeus::colosseum {
namespace answer_stream_test {

constexpr std::string_view kStream =
    "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":null}}]}\n\n"
    "data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"hm\"}}]}\r\n\r\n"
    "data: {\"choices\":[{\"delta\":{\"content\":\"Be\"}}]}\n\n"
    "data: {\"choices\":[{\"delta\":{\"content\":\"cause\"}}]}\n\n"
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}\n\n"
    ": energy {\"energy_joules\":1.5,\"sigma_joules\":0.1,\"final\":false,\"request\":\"r-1\"}\n\n"
    "data: [DONE]\n\n";

TEST(AnswerStreamTest, TextCountsAndEnergyAreRead) {
  std::string text;
  AnswerStream stream([&](std::string_view piece) { text += piece; });
  stream.Feed(kStream);
  const auto answer = stream.Finish();
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_EQ(text, "Because");
  EXPECT_EQ(answer.value().request, "r-1");
  EXPECT_EQ(answer.value().output_tokens, 2);
  EXPECT_EQ(answer.value().prompt_tokens, 3);
  EXPECT_EQ(answer.value().energy->energy, Joules(1.5));
  EXPECT_FALSE(answer.value().energy->final);
}

TEST(AnswerStreamTest, EveryCutGivesTheSame) {
  for (std::size_t i = 0; i < kStream.size(); ++i) {
    std::string text;
    AnswerStream stream([&](std::string_view piece) { text += piece; });
    stream.Feed(kStream.substr(0, i));
    stream.Feed(kStream.substr(i));
    EXPECT_EQ(stream.Finish().value().energy->sigma, Joules(0.1)) << i;
    EXPECT_EQ(text, "Because") << i;
  }
}

TEST(AnswerStreamTest, AnErrorWithinTheStreamIsNoAnswer) {
  AnswerStream stream([](std::string_view) {});
  stream.Feed("data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n");
  stream.Feed("data: {\"error\":{\"message\":\"out of memory\"}}\n\n");
  EXPECT_TRUE(stream.failed());
  EXPECT_EQ(stream.Finish().error().message, "out of memory");
}

TEST(AnswerStreamTest, WithoutTextThereIsNoAnswer) {
  AnswerStream stream([](std::string_view) {});
  stream.Feed("data: [DONE]\n\n{\"x\": broken\ndata: [1, 2]\ndata: {\"choices\":[7]}\n");
  EXPECT_FALSE(stream.Finish().ok());
}

TEST(AnswerStreamTest, ARecordOfTheGatewayIsRead) {
  Contestant answer;
  ReadRequestFacts(ParseJson(R"({"request": "r-2", "output_tokens": 7, "duration_seconds": 1.5,
                                 "energy_joules": 9, "sigma_joules": 0.5, "prefill_joules": 4,
                                 "decode_joules": 5, "decode_sigma_joules": 0.25, "final": true})")
                       .value(),
                   answer);
  EXPECT_EQ(answer.output_tokens, 7);
  EXPECT_EQ(answer.duration, Seconds(1.5));
  EXPECT_TRUE(answer.energy->final);
  EXPECT_EQ(answer.energy->decode_sigma, Joules(0.25));
  EXPECT_FALSE(answer.energy->prefill_sigma);
  Contestant unknown;
  ReadRequestFacts(ParseJson(R"({"energy_joules": null, "absent_reason": "no GPU"})").value(),
                   unknown);
  EXPECT_FALSE(unknown.energy);
  EXPECT_EQ(unknown.absent_reason, "no GPU");
}

}  // namespace answer_stream_test
}  // namespace zeus::colosseum
