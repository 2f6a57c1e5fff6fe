// Replaces the sessions of `zeus serve` and `zeus llm` where Zeus is built without its servers
// (-DZEUS_SERVER=OFF), which need Boost: the verbs are there and say why they do nothing.
#include "apps/zeus/http_server_frame.h"
#include "apps/zeus/llm/bench_session.h"
#include "apps/zeus/llm/colosseum_session.h"
#include "apps/zeus/llm/gateway_session.h"
#include "apps/zeus/llm/sim_session.h"
#include "apps/zeus/serve/serve_session.h"

namespace zeus::cli {
namespace {

Error BuiltWithoutServers() {
  return {ErrorCode::kNotSupported,
          "this zeus was built without its servers: ./dev build builds it with everything"};
}

}  // namespace

Result<int> RunServe(const ServeOptions& /*options*/) { return BuiltWithoutServers(); }
Result<int> MakeToken(const HttpServerOptions& /*options*/) { return BuiltWithoutServers(); }
Result<int> RunLlmBench(const LlmBenchOptions& /*options*/) { return BuiltWithoutServers(); }
Result<int> RunColosseum(const ColosseumOptions& /*options*/) { return BuiltWithoutServers(); }
Result<int> RunLlmGateway(const LlmGatewayOptions& /*options*/) { return BuiltWithoutServers(); }
Result<int> RunLlmSim(const LlmSimOptions& /*options*/) { return BuiltWithoutServers(); }

}  // namespace zeus::cli
