#pragma once

#include <string>

#include "apps/zeus/command_line.h"

namespace zeus::cli {

// The options that every program of ours that listens has, by the same names.
struct ServerFiles {
  std::string tls_certificate{};  // Empty: no TLS.
  std::string tls_key{};
  std::string access_log{};  // Empty: none; "-": standard error.
};

// --listen
void AddListenOption(Verb verb, std::string& address);
// --tls-cert and --tls-key, which need each other.
void AddTlsOptions(Verb verb, std::string& certificate, std::string& key);
void AddTlsOptions(Verb verb, ServerFiles& files);
// --shutdown-timeout. `subject` finishes in it: "requests".
void AddShutdownTimeout(Verb verb, double& seconds, const std::string& subject);
// --access-log
Option AddAccessLogOption(Verb verb, ServerFiles& files);

}  // namespace zeus::cli
