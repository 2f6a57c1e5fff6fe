#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "zeus/base/random.h"
#include "zeus/wire/llm/response_filter.h"
#include "zeus/wire/llm/testing/sample_responses.h"

// A hundred thousand streams: samples with other line ends, comments, damage and cuts, which arrive
// in random pieces.
namespace zeus::llm {
namespace random_streams_test {

using testing::RecordingListener;
using testing::Replaced;
using testing::SampleResponse;
using testing::Varied;

constexpr int kStreams = 100'000;

struct Outcome {
  std::string out;
  ResponseFacts facts;
  std::vector<double> tokens;

  bool operator==(const Outcome& other) const {
    return out == other.out && tokens == other.tokens &&
           facts.seen_tokens == other.facts.seen_tokens &&
           facts.prompt_tokens == other.facts.prompt_tokens &&
           facts.cached_tokens == other.facts.cached_tokens &&
           facts.output_tokens == other.facts.output_tokens &&
           facts.finish_reasons == other.facts.finish_reasons && facts.error == other.facts.error;
  }
};

Outcome Filtered(const RequestFacts& request, const ResponsePlan& plan, std::string_view body,
                 Random* random) {
  RecordingListener listener;
  ResponseFilter filter(request, plan, listener);
  Outcome outcome;
  while (!body.empty()) {
    const std::size_t most =
        random == nullptr ? body.size() : 1 + random->Below(1 + random->Below(300));
    const std::string_view piece = body.substr(0, std::min(most, body.size()));
    filter.Feed(piece, outcome.out);
    body.remove_prefix(piece.size());
  }
  filter.Finish(outcome.out);
  outcome.facts = filter.facts();
  outcome.tokens = listener.tokens();
  return outcome;
}

// The annotated text without the energy: the reverse of every insertion.
std::string WithoutEnergy(std::string text) {
  const std::string energy = ToJsonText(testing::SampleNote());
  for (const char* end : {"\r\n\r\n", "\n\n", "\r\r"})
    text = Replaced(text, ": energy " + energy + end, "");
  text = Replaced(text, ",\"energy\":" + energy, "");
  return Replaced(text, "\"energy\":" + energy, "");
}

TEST(RandomStreamsTest, NoByteDiffersAndNoSplitMatters) {
  Random random(19);
  const std::vector<SampleResponse> samples = testing::SampleResponses();
  std::vector<RequestFacts> requests;
  for (const SampleResponse& sample : samples) requests.push_back(sample.Request());
  std::size_t annotated = 0;
  for (int i = 0; i < kStreams; ++i) {
    const std::size_t which = random.Below(samples.size());
    const std::string body = Varied(samples[which].Body(), random);
    ResponsePlan plan{.content_type = samples[which].content_type,
                      .content_encoding = "",
                      .annotate = Annotate::kNone,
                      .largest_event = random.Below(4) == 0 ? 300 : std::size_t{4} << 20};
    const Outcome plain = Filtered(requests[which], plan, body, &random);
    ASSERT_EQ(plain.out, body) << samples[which].name << ", stream " << i;
    plan.annotate = Annotate::kAll;
    const Outcome whole = Filtered(requests[which], plan, body, nullptr);
    const Outcome split = Filtered(requests[which], plan, body, &random);
    ASSERT_EQ(whole.out, split.out) << samples[which].name << ", stream " << i;
    ASSERT_TRUE(whole == split) << samples[which].name << ", stream " << i;
    ASSERT_EQ(plain.tokens, whole.tokens) << samples[which].name << ", stream " << i;
    const std::string stripped = WithoutEnergy(whole.out);
    // A stream that ends inside of a comment gets a line end before the energy.
    ASSERT_TRUE(stripped == body || stripped == body + "\n" || stripped == body + "\r\n" ||
                stripped == body + "\r")
        << samples[which].name << ", stream " << i << "\n"
        << whole.out;
    annotated += whole.out != body ? 1 : 0;
  }
  EXPECT_GT(annotated, kStreams / 2);
}

}  // namespace random_streams_test
}  // namespace zeus::llm
