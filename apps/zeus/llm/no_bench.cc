// Replaces bench_session.cc where Zeus is built without its server (-DZEUS_SERVER=OFF): the load
// generator needs Boost.
#include "apps/zeus/llm/bench_session.h"

namespace zeus::cli {

Result<int> RunLlmBench(const LlmBenchOptions& /*options*/) {
  return Error{ErrorCode::kNotSupported,
               "this zeus was built without its servers: ./dev build builds it with everything"};
}

}  // namespace zeus::cli
