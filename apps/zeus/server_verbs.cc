// The verbs of zeus-servers: those with a server, which the zeus command hands over (see
// server_program.cc).
#include "apps/zeus/fleet/fleet_command.h"
#include "apps/zeus/verbs.h"

namespace zeus::cli {

const bool kHasAllVerbs = false;

std::vector<VerbEntry> Verbs() {
  return {{"fleet", WithoutTail(AddFleetCommand)},
          {"llm", WithoutTail(AddLlmCommand)},
          {"monitor", WithoutTail(AddMonitorCommand)},
          {"serve", WithoutTail(AddServeCommand)}};
}

}  // namespace zeus::cli
