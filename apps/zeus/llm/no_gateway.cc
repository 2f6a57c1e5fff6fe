// Replaces gateway_session.cc where Zeus is built without its server (-DZEUS_SERVER=OFF).
#include "apps/zeus/llm/gateway_session.h"

namespace zeus::cli {

Result<int> RunLlmGateway(const LlmGatewayOptions& /*options*/) {
  return Error{ErrorCode::kNotSupported,
               "this zeus was built without its servers: ./dev build builds it with everything"};
}

}  // namespace zeus::cli
