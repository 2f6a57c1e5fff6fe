#pragma once

#include <string>

#include "apps/zeus/command_line.h"

// The options of every verb that listens for clients.
namespace zeus::cli {

// Declares --listen.
void AddListenOption(Verb verb, std::string& address);

// Declares --tls-cert and --tls-key, which need each other.
void AddTlsOptions(Verb verb, std::string& certificate, std::string& key);

// Declares --shutdown-timeout. `what` finishes in it: "requests".
void AddShutdownTimeout(Verb verb, double& seconds, const std::string& what);

}  // namespace zeus::cli
