#include "zeus/inference/server/answer_text.h"

#include <gtest/gtest.h>

namespace zeus::inference {
namespace {

std::string Text(const AnswerSequence& answer) {
  std::string text;
  for (unsigned i = 1; i <= answer.tokens(); ++i) text += answer.Token(i);
  return text;
}

TEST(AnswerSequenceTest, SameSeedSameWords) {
  const CompletionRequest request{.max_tokens = 50, .ignore_eos = true};
  const AnswerSequence first(request, 200, Random(1));
  EXPECT_EQ(first.tokens(), 50U);
  EXPECT_STREQ(first.finish_reason(), "length");
  EXPECT_EQ(Text(first), Text(AnswerSequence(request, 200, Random(1))));
  EXPECT_NE(Text(first), Text(AnswerSequence(request, 200, Random(2))));
  EXPECT_EQ(CountTokens(Text(first)) >= 50U, true);
}

TEST(AnswerSequenceTest, LengthsAreDrawnAroundTheMean) {
  const CompletionRequest request{.max_tokens = 100'000};
  double sum = 0;
  constexpr int kDraws = 2000;
  for (int i = 0; i < kDraws; ++i)
    sum += AnswerSequence(request, 200, Random(static_cast<std::uint64_t>(i))).tokens();
  EXPECT_NEAR(sum / kDraws, 200, 20);
}

TEST(AnswerSequenceTest, MinTokensHold) {
  const CompletionRequest request{.max_tokens = 500, .min_tokens = 500};
  EXPECT_EQ(AnswerSequence(request, 1, Random(1)).tokens(), 500U);
}

TEST(AnswerSequenceTest, StopEndsTheTextBeforeIt) {
  const CompletionRequest plain{.max_tokens = 400, .ignore_eos = true};
  const std::string whole = Text(AnswerSequence(plain, 200, Random(3)));
  const std::size_t position = whole.find(" river");
  ASSERT_NE(position, std::string::npos);
  CompletionRequest stopped = plain;
  stopped.stop = {" river"};
  const AnswerSequence answer(stopped, 200, Random(3));
  EXPECT_EQ(Text(answer), whole.substr(0, position));
  EXPECT_LT(answer.tokens(), 400U);
  EXPECT_STREQ(answer.finish_reason(), "stop");
}

TEST(AnswerSequenceTest, WordsOfAnotherServerAreKept) {
  const AnswerSequence answer(CompletionRequest{}, "Once upon\n a time. ");
  EXPECT_EQ(Text(answer), "Once upon\n a time. ");
  EXPECT_EQ(answer.tokens(), 5U);
  EXPECT_STREQ(answer.finish_reason(), "stop");
  EXPECT_EQ(AnswerSequence(CompletionRequest{.max_tokens = 2}, "Once upon a time").tokens(), 2U);
}

}  // namespace
}  // namespace zeus::inference
