#include "zeus/server/origin_guard.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "zeus/base/text.h"

namespace zeus::server {
namespace {

// "localhost" of "localhost:8000", "::1" of "[::1]:8000".
std::string HostOf(std::string_view authority) {
  std::string text = LowerCase(Trim(authority));
  if (text.starts_with('[')) return text.substr(1, text.find(']') - 1);
  text = text.substr(0, text.find(':'));
  while (text.ends_with('.')) text.pop_back();
  return text;
}

bool IsLoopback(std::string_view host) {
  if (host == "localhost" || host.ends_with(".localhost") || host == "::1") return true;
  return host.starts_with("127.") &&
         host.find_first_not_of("0123456789.") == std::string_view::npos;
}

}  // namespace

OriginGuard::OriginGuard(Options options)
    : options_([&] {
        for (std::string& host : options.hosts) host = HostOf(host);
        options.listen_host = HostOf(options.listen_host);
        return std::move(options);
      }()) {}

bool OriginGuard::IsOurs(const std::string& host) const {
  return IsLoopback(host) || (!host.empty() && host == options_.listen_host) ||
         std::ranges::find(options_.hosts, host) != options_.hosts.end();
}

std::optional<std::string> OriginGuard::Refuse(const HttpRequest& header, bool changes) const {
  // Browsers always send a host; who sends none is no browser.
  if (options_.local && !header.host.empty() && !IsOurs(HostOf(header.host)))
    return fmt::format(
        "this server does not answer as {}: use localhost, or start it with --allow-host {}",
        Quote(header.host), Printable(HostOf(header.host)));
  if (!changes) return std::nullopt;
  if (header.fetch_site == "cross-site" || header.fetch_site == "same-site")
    return "a page of another origin must not change anything here";
  if (header.origin.empty()) return std::nullopt;
  const std::size_t scheme = header.origin.find("://");
  const std::string authority =
      scheme == std::string::npos ? "" : LowerCase(header.origin.substr(scheme + 3));
  const bool same = !authority.empty() && authority == LowerCase(header.host);
  const bool allowed = std::ranges::find(options_.hosts, HostOf(authority)) != options_.hosts.end();
  if (same || (allowed && !authority.empty())) return std::nullopt;
  return fmt::format("a page of {} must not change anything here", Quote(header.origin));
}

}  // namespace zeus::server
