#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/random.h"
#include "zeus/inference/server/completion_request.h"

namespace zeus::inference {

// One sequence of an answer, decided before its first token: its length and its words. One owner.
class AnswerSequence {
 public:
  // Words of a small embedded list; the same seed gives the same words. Where the request does not
  // fix it, the length is drawn from an exponential distribution.
  AnswerSequence(const CompletionRequest& request, double mean_tokens, Random random);
  // The words of a text that another server wrote.
  AnswerSequence(const CompletionRequest& request, std::string_view text);

  unsigned tokens() const { return tokens_; }
  // The text of a token, from 1.
  std::string Token(unsigned number) const;
  // "length" when the limit of the request ended it, else "stop".
  const char* finish_reason() const { return finish_reason_; }

 private:
  void Limit(const CompletionRequest& request);
  void StopAt(const std::vector<std::string>& stops);

  std::uint64_t seed_ = 0;
  unsigned tokens_ = 1;
  const char* finish_reason_ = "stop";
  std::vector<std::string> words_{};  // Only where the words are not drawn.
};

}  // namespace zeus::inference
