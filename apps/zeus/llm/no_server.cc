// Replaces sim_session.cc where Zeus is built without its server (-DZEUS_SERVER=OFF).
#include "apps/zeus/llm/sim_session.h"

namespace zeus::cli {

Result<int> RunLlmSim(const LlmSimOptions& /*options*/) {
  return Error{ErrorCode::kNotSupported,
               "this zeus was built without its server: ./dev build builds it with everything"};
}

}  // namespace zeus::cli
