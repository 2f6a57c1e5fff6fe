// The zeus command without its servers: verbs that serve go on in the program zeus-servers, which
// has them. Boost, OpenSSL and the pages thus cost the other verbs nothing when they start. The
// process stays the same, so service managers and shells see one program.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "apps/zeus/companion.h"
#include "apps/zeus/fleet/fleet_session.h"
#include "apps/zeus/http_server_frame.h"
#include "apps/zeus/llm/bench_session.h"
#include "apps/zeus/llm/colosseum_session.h"
#include "apps/zeus/llm/gateway_session.h"
#include "apps/zeus/llm/sim_session.h"
#include "apps/zeus/monitor/site.h"
#include "apps/zeus/serve/serve_session.h"
#include "zeus/base/own_program.h"
#include "zeus/base/process.h"
#include "zeus/base/text.h"

namespace zeus::cli {
namespace {

// Starts the command line of this process anew in zeus-servers. Returns only an error.
Error ContinueInServerProgram() {
  auto words = OwnCommandLine();
  if (!words.ok()) return words.error();
  const auto program = FindCompanion("zeus/zeus-servers");
  if (!program.ok()) return program.error();
  std::vector<char*> pointers;
  for (std::string& word : words.value()) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  ::execv(program.value().c_str(), pointers.data());
  return Error{ErrorCode::kUnavailable,
               fmt::format("cannot start {}: {}", Printable(program.value().string()),
                           std::strerror(errno))};
}

}  // namespace

Status PrepareMonitorSite() { return ContinueInServerProgram(); }

Result<std::unique_ptr<MonitorSite>> StartMonitorSite(const std::string& /*address*/,
                                                      NodeMonitor& /*node*/,
                                                      MonitorSite::Sources /*sources*/) {
  return ContinueInServerProgram();
}

Result<int> RunFleet(const FleetOptions& /*options*/) { return ContinueInServerProgram(); }
Result<int> RunServe(const ServeOptions& /*options*/) { return ContinueInServerProgram(); }
Result<int> MakeToken(const HttpServerOptions& /*options*/) { return ContinueInServerProgram(); }
Result<int> RunLlmBench(const LlmBenchOptions& /*options*/) { return ContinueInServerProgram(); }
Result<int> RunColosseum(const ColosseumOptions& /*options*/) { return ContinueInServerProgram(); }
Result<int> RunLlmGateway(const LlmGatewayOptions& /*o*/) { return ContinueInServerProgram(); }
Result<int> RunLlmSim(const LlmSimOptions& /*options*/) { return ContinueInServerProgram(); }

}  // namespace zeus::cli
