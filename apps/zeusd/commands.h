#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "apps/zeus/command_line.h"
#include "zeus/base/result.h"
#include "zeus/daemon/access_rules.h"

namespace zeus::daemon::cli {

using zeus::cli::Verb;

// The action of a verb, called once the command line is parsed. The value is the exit code.
using Action = std::function<Result<int>()>;

// The verbs of `zeusd`. Each function declares the options of its verb below `app` and, when the
// verb is chosen, sets `action`.
void AddServeCommand(Verb app, Action& action);
void AddCheckConfigCommand(Verb app, Action& action);
void AddTokenCommand(Verb app, Action& action);
void AddRestoreCommand(Verb app, Action& action);
void AddStatusCommand(Verb app, Action& action);

inline constexpr const char* kSocket = "/run/zeusd/zeusd.sock";
inline constexpr const char* kConfiguration = "/etc/zeus/zeusd.toml";

// The configuration of this file; without a name that of kConfiguration if it exists, else the
// default one.
Result<Configuration> LoadConfiguration(const std::string& file);

}  // namespace zeus::daemon::cli
