#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/base/units.h"
#include "zeus/inference/server/completion_request.h"

namespace zeus::inference {

// Counts of tokens as OpenAI's "usage" has them.
struct Usage {
  unsigned prompt_tokens = 0;
  unsigned cached_tokens = 0;
  unsigned output_tokens = 0;
};

// How an answer ended.
struct AnswerEnd {
  const Usage* usage = nullptr;  // Null when the counts are not sent.
  const char* finish_reason = "stop";
  Seconds duration{};  // From the request's arrival.
  Seconds decode{};    // From the first token.
};

// One sequence of an answer that is not streamed.
struct AnswerChoice {
  std::string text{};
  const char* finish_reason = "stop";
};

// Writes the answers to one request in the dialect of its endpoint. One owner.
class AnswerFormat {
 public:
  virtual ~AnswerFormat() = default;

  virtual const char* stream_content_type() const = 0;
  // The piece of a stream with which a sequence begins; may be empty.
  virtual std::string FirstEvent(unsigned sequence) const = 0;
  // A piece of a stream with new text of a sequence. `finish_reason` is null until its last one,
  // `usage` is null where the client did not ask for running counts.
  virtual std::string Event(unsigned sequence, std::string_view text, const char* finish_reason,
                            const Usage* usage) const = 0;
  // The counts at the end of a stream; empty without them.
  virtual std::string UsageEvent(const AnswerEnd& end) const = 0;
  // The mark of the end, after the counts; empty where the dialect has none.
  virtual std::string DoneEvent() const = 0;
  virtual std::string ErrorEvent(std::string_view message) const = 0;
  // A whole answer.
  virtual Json Whole(const std::vector<AnswerChoice>& choices, const AnswerEnd& end) const = 0;
};

// `name` is the id of the request, `created` seconds since 1970.
std::unique_ptr<AnswerFormat> MakeFormat(Endpoint endpoint, std::string_view name,
                                         std::string_view model, long long created);

// The answer to a request for embeddings. `usage` may be null.
Json EmbeddingsJson(std::string_view model, unsigned inputs, const Usage* usage);

// {"error": {"message", "type", "param", "code"}}
Json ErrorJson(int status, std::string_view message);

}  // namespace zeus::inference
