#include "zeus/http/url.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "zeus/base/text.h"

namespace zeus::http {
namespace {

constexpr std::string_view kUnix = "unix:";
constexpr std::string_view kDefaultListenHost = "127.0.0.1";

std::optional<std::uint16_t> ParsePort(std::string_view text) {
  const auto port = ParseUnsigned(text);
  if (!port.ok() || port.value() > std::numeric_limits<std::uint16_t>::max()) return std::nullopt;
  return static_cast<std::uint16_t>(port.value());
}

// Splits "host:port" or "[::1]:port" into `url`. Returns false when the text is neither.
bool ReadAuthority(std::string_view authority, Url& url) {
  std::string_view rest;
  if (authority.starts_with('[')) {
    const std::size_t end = authority.find(']');
    if (end == std::string_view::npos) return false;
    url.host = authority.substr(1, end - 1);
    rest = authority.substr(end + 1);
  } else {
    const std::size_t colon = authority.find(':');
    url.host = authority.substr(0, colon);
    if (colon != std::string_view::npos) rest = authority.substr(colon);
  }
  if (url.host.empty() || url.host.find_first_of("?#@ []") != std::string::npos) return false;
  if (rest.empty()) return true;
  if (!rest.starts_with(':')) return false;
  url.port = ParsePort(rest.substr(1));
  return url.port.has_value();
}

std::optional<Url> ParseTcpUrl(std::string_view text) {
  const std::size_t scheme_end = text.find("://");
  if (scheme_end == std::string_view::npos) return std::nullopt;
  const std::string_view scheme = text.substr(0, scheme_end);
  if (scheme != "http" && scheme != "https") return std::nullopt;
  Url url{.scheme = scheme == "http" ? Url::Scheme::kHttp : Url::Scheme::kHttps};
  const std::string_view rest = text.substr(scheme_end + 3);
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  if (!ReadAuthority(rest.substr(0, slash), url)) return std::nullopt;
  url.path = rest.substr(slash);
  if (url.path.find_first_of("?# ") != std::string::npos) return std::nullopt;
  while (url.path.ends_with('/')) url.path.pop_back();
  return url;
}

std::optional<Url> ParseUnixUrl(std::string_view text) {
  std::string_view path = text.substr(kUnix.size());
  if (path.starts_with("//")) path.remove_prefix(2);
  if (!path.starts_with('/')) return std::nullopt;
  return Url{.scheme = Url::Scheme::kUnix, .path = std::string(path)};
}

bool IsPlain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.' || c == '~';
}

}  // namespace

std::string Url::server() const {
  if (scheme == Scheme::kUnix) return std::string(kUnix) + path;
  const std::string_view name = scheme == Scheme::kHttp ? "http" : "https";
  if (port) return fmt::format("{}://{}", name, Authority(host, *port));
  const bool ipv6 = host.find(':') != std::string::npos;
  return fmt::format("{}://{}{}{}", name, ipv6 ? "[" : "", host, ipv6 ? "]" : "");
}

Result<Url> ParseUrl(std::string_view text) {
  auto url = text.starts_with(kUnix) ? ParseUnixUrl(text) : ParseTcpUrl(text);
  if (url) return *std::move(url);
  return InvalidArgument(
      Quote(text) + " is no address of a server like http://host:8000 or unix:///run/zeus.sock");
}

Result<ListenAddress> ParseListenAddress(std::string_view text) {
  const Error wrong = InvalidArgument(
      fmt::format("{} is not an address to listen on: use host:port, [::1]:port, a port or "
                  "unix:/path",
                  Quote(text)));
  if (text.starts_with(kUnix)) {
    ListenAddress address{.socket_path = std::string(text.substr(kUnix.size()))};
    // sockaddr_un has room for 108 bytes, with the zero at the end.
    constexpr std::size_t kLongestPath = 100;
    if (address.socket_path.empty() || address.socket_path.size() > kLongestPath)
      return InvalidArgument("the path of a Unix socket must have 1 to 100 characters");
    return address;
  }
  const auto colon = text.rfind(':');
  const bool port_only = colon == std::string_view::npos;
  std::string_view host = port_only ? "" : text.substr(0, colon);
  const auto port = ParsePort(port_only ? text : text.substr(colon + 1));
  if (!port) return wrong;
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
    if (host.empty()) return wrong;
  } else if (host.find(':') != std::string_view::npos) {
    return wrong;  // Without brackets it is unclear where an IPv6 address ends.
  }
  return ListenAddress{.host = std::string(host.empty() ? kDefaultListenHost : host),
                       .port = *port};
}

std::string Authority(std::string_view host, std::uint16_t port) {
  const bool ipv6 = host.find(':') != std::string_view::npos;
  return fmt::format("{}{}{}:{}", ipv6 ? "[" : "", host, ipv6 ? "]" : "", port);
}

std::string HostOfAuthority(std::string_view authority) {
  std::string text = LowerCase(Trim(authority));
  if (text.starts_with('[')) return text.substr(1, text.find(']') - 1);
  text = text.substr(0, text.find(':'));
  while (text.ends_with('.')) text.pop_back();
  return text;
}

bool IsLoopback(std::string_view host) {
  if (host == "localhost" || host.ends_with(".localhost") || host == "::1") return true;
  // Digits only: "127.example.org" is the name of another machine.
  return host.starts_with("127.") &&
         host.find_first_not_of("0123456789.") == std::string_view::npos;
}

std::string PercentEncoded(std::string_view text) {
  std::string encoded;
  for (const char c : text) {
    if (IsPlain(c)) {
      encoded += c;
    } else {
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

}  // namespace zeus::http
