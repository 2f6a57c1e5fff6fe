#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "zeus/base/result.h"

// Addresses: those that clients call and those that servers listen on.
namespace zeus::http {

// The address of a server. Only the parts that our clients use exist: a user, a query or a fragment
// makes a URL invalid.
struct Url {
  enum class Scheme { kHttp, kHttps, kUnix };

  Scheme scheme = Scheme::kHttp;
  std::string host{};                   // Without brackets; empty for a Unix socket.
  std::optional<std::uint16_t> port{};  // nullopt: the scheme's default.
  std::string path{};  // "/prefix" without a slash at its end, or the path of the Unix socket.

  // "http://host:8000" without the path; "unix:/run/zeus.sock".
  std::string server() const;
};

// Parses "http://host:8000", "https://[::1]/prefix/" and "unix:///run/zeus.sock" (also with one
// slash). Returns kInvalidArgument, quoting the text, otherwise.
Result<Url> ParseUrl(std::string_view text);

// Where a server listens: a TCP port, or a Unix socket.
struct ListenAddress {
  std::string host{};         // Empty for a Unix socket.
  std::uint16_t port = 0;     // 0: the system chooses a free one.
  std::string socket_path{};  // Empty for TCP.

  bool is_unix() const { return !socket_path.empty(); }
};

// Parses "host:port", "[::1]:port", "unix:/path", or a port alone (with or without the colon),
// which means the loopback interface. Returns kInvalidArgument otherwise.
Result<ListenAddress> ParseListenAddress(std::string_view text);

// "host:8000", or "[::1]:8000" for an IPv6 address.
std::string Authority(std::string_view host, std::uint16_t port);

// The host of an authority as the Host header carries it: "localhost" of "LocalHost.:8000", "::1"
// of "[::1]:8000".
std::string HostOfAuthority(std::string_view authority);

// Returns whether a host name or address always means this machine. The name is not looked up.
bool IsLoopback(std::string_view host);

// Escapes text for one segment of a path or one value of a query.
std::string PercentEncoded(std::string_view text);

}  // namespace zeus::http
