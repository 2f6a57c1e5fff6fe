#pragma once

#include <string>
#include <string_view>

#include "zeus/base/json_fwd.h"
#include "zeus/inference/server/completion_request.h"

namespace zeus::inference {

// Counts of tokens as OpenAI's "usage" has them.
struct Usage {
  unsigned prompt_tokens = 0;
  unsigned cached_tokens = 0;
  unsigned output_tokens = 0;
};

// Writes the answers to one request in OpenAI's format. One owner.
class CompletionFormat {
 public:
  // `name` is the id of the request, `created` seconds since 1970.
  CompletionFormat(Endpoint endpoint, std::string_view name, std::string_view model,
                   long long created);

  // An event of a stream with new text of a sequence. `finish_reason` is null until its last one,
  // `usage` is null where the client did not ask for running counts.
  std::string Event(unsigned sequence, std::string_view text, const char* finish_reason,
                    const Usage* usage) const;
  // The event of a chat with which a sequence begins; empty for other endpoints.
  std::string FirstEvent(unsigned sequence) const;
  std::string UsageEvent(const Usage& usage) const;
  static std::string DoneEvent() { return "data: [DONE]\n\n"; }
  static std::string ErrorEvent(std::string_view message);

  // A whole answer; "choices" are added by AddChoice().
  Json Whole(const Usage& usage) const;
  void AddChoice(Json& whole, unsigned sequence, const std::string& text,
                 const char* finish_reason) const;
  // The answer to a request for embeddings.
  Json Embeddings(unsigned inputs, const Usage& usage) const;

 private:
  const Endpoint endpoint_;
  const std::string name_;
  const std::string model_;
  const long long created_;
  const std::string prefix_;  // All events begin with it.
};

// {"error": {"message", "type", "param", "code"}}
Json ErrorJson(int status, std::string_view message);

}  // namespace zeus::inference
