#include "fuzz/llm_fuzzing.h"

// Streams of JSON lines.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  zeus::llm::fuzzing::CheckResponse("application/x-ndjson", data, size);
  return 0;
}
