#include "fuzz/llm_fuzzing.h"
#include "zeus/base/json.h"
#include "zeus/wire/llm/request.h"

namespace {

using namespace zeus;
using namespace zeus::llm;

// A body that is asked for usage stays JSON, and then asks for it.
void CheckRequest(std::string_view target, std::string_view body) {
  const auto facts = InspectRequest("POST", target, "application/json", body);
  if (!facts) return;
  const auto asked = WithUsageAsked(*facts, body);
  if (!asked || !Json::accept(body)) return;
  const auto again = InspectRequest("POST", target, "application/json", *asked);
  fuzzing::Require(again && again->usage_wanted && Json::accept(*asked));
  fuzzing::Require(again->model == facts->model && again->sequences == facts->sequences);
}

}  // namespace

// Bodies of responses and of requests.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzzing::CheckResponse("application/json", data, size);
  const std::string text = fuzzing::Expanded({reinterpret_cast<const char*>(data), size});
  for (const char* target : {"/v1/chat/completions", "/v1/completions", "/api/chat", "/completion",
                             "/generate", "/v1/messages", "/v1/embeddings", "/v1/responses"})
    CheckRequest(target, text);
  return 0;
}
