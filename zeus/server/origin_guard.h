#pragma once

#include <optional>
#include <string>
#include <vector>

#include "zeus/server/http_message.h"

namespace zeus::server {

// Keeps web pages from using the browser of somebody who can reach the server. A page of another
// origin can make a browser send requests, and with a name whose address it changes (DNS
// rebinding) it could even read answers of a server that only this machine reaches. Thread-safe.
class OriginGuard {
 public:
  struct Options {
    // Whether the server can be reached from this machine only: then it knows its own names.
    bool local = false;
    std::string listen_host{};         // As it was given: one of these names.
    std::vector<std::string> hosts{};  // More names, of a proxy in front of it for example.
  };

  explicit OriginGuard(Options options);

  // Why not, for a request that is refused. `changes`: it would change something.
  std::optional<std::string> Refuse(const HttpRequest& header, bool changes) const;

 private:
  bool IsOurs(const std::string& host) const;

  const Options options_;
};

}  // namespace zeus::server
