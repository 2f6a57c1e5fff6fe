#include "fuzz/llm_fuzzing.h"

// Streams of server-sent events.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  zeus::llm::fuzzing::CheckResponse("text/event-stream", data, size);
  return 0;
}
