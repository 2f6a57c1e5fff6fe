#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "zeus/http/message.h"
#include "zeus/http/router.h"
#include "zeus/http/tokens.h"

namespace zeus::http {

// Keeps web pages from misusing the browser of somebody who can reach the server. A page of another
// origin can make a browser send requests, and with a host name whose address it changes (DNS
// rebinding) it could even read the answers of a server that listens on the loopback interface
// only. Thread-safe.
class OriginGuard {
 public:
  struct Options {
    bool local = false;         // Only this machine reaches the server, so its names are known.
    std::string listen_host{};  // The address it listens on, as the user gave it.
    std::vector<std::string> hosts{};  // Further names, of a proxy in front of it for example.
  };

  explicit OriginGuard(Options options);

  // Returns the reason for a refusal, or nullopt. `changes`: the request would change something.
  std::optional<std::string> Refuse(const Request& header, bool changes) const;

 private:
  bool IsOurs(const std::string& host) const;

  const Options options_;
};

// The identity of a caller. Without tokens everybody is an administrator.
struct Visitor {
  std::string user{};
  std::string name_space{};
  Role role = Role::kAdmin;
};

// Decides whether a request may use a route, by origin, token, role and name space, and counts the
// attempts that it refuses. Thread-safe. The referenced objects must outlive it.
class AccessControl {
 public:
  struct Options {
    const TokenFile* tokens = nullptr;  // nullptr: everybody may do everything.
    LoginLimiter* logins = nullptr;     // nullptr: wrong tokens are not slowed down.
    OriginGuard::Options origins{};
  };
  struct Counts {
    std::uint64_t missing_tokens = 0;
    std::uint64_t wrong_tokens = 0;
    std::uint64_t refused_logins = 0;  // From addresses that had sent too many wrong tokens.
  };

  explicit AccessControl(Options options)
      : options_(std::move(options)), guard_(options_.origins) {}

  // Returns the answer that refuses the request, or nullopt and the caller in `visitor`.
  std::optional<Answer> Refuse(const Request& request, const Route& route, Visitor& visitor);
  // Whether the request carries a token of the file, whatever the route wants.
  bool HasToken(const Request& request) const;
  Counts counts() const;

 private:
  std::optional<Answer> RefuseLogin(const Request& request, Dialect dialect, Visitor& visitor);
  static std::optional<Answer> RefuseNameSpace(const Request& request, Dialect dialect,
                                               Visitor& visitor);

  const Options options_;
  const OriginGuard guard_;
  std::atomic<std::uint64_t> missing_tokens_ = 0;
  std::atomic<std::uint64_t> wrong_tokens_ = 0;
  std::atomic<std::uint64_t> refused_logins_ = 0;
};

}  // namespace zeus::http
