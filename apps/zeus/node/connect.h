#pragma once

#include <memory>
#include <string>

#include "apps/zeus/command_line.h"
#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/client/node/node_daemon_client.h"

namespace zeus::cli {

// The daemon that a verb is about.
struct DaemonOptions {
  std::string socket{};  // Empty: as the environment says, or the usual one.
};
void AddSocketOption(Verb verb, DaemonOptions& options);

// A person waits for the answer: a daemon that does not run is an error at once.
Result<std::unique_ptr<client::NodeDaemonClient>> Connect(const DaemonOptions& options,
                                                          Clock& clock);

}  // namespace zeus::cli
