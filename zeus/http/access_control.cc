#include "zeus/http/access_control.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "zeus/base/identifier.h"
#include "zeus/base/text.h"
#include "zeus/http/url.h"

namespace zeus::http {
namespace {

constexpr std::string_view kScheme = "bearer ";

// Returns the token of "Bearer zeus_…", empty when there is none.
std::string_view BearerToken(std::string_view authorization) {
  if (LowerCase(authorization.substr(0, kScheme.size())) != kScheme) return {};
  return Trim(authorization.substr(kScheme.size()));
}

}  // namespace

OriginGuard::OriginGuard(Options options)
    : options_([&] {
        for (std::string& host : options.hosts) host = HostOfAuthority(host);
        options.listen_host = HostOfAuthority(options.listen_host);
        return std::move(options);
      }()) {}

bool OriginGuard::IsOurs(const std::string& host) const {
  return IsLoopback(host) || (!host.empty() && host == options_.listen_host) ||
         std::ranges::find(options_.hosts, host) != options_.hosts.end();
}

std::optional<std::string> OriginGuard::Refuse(const Request& header, bool changes) const {
  // Browsers always send a host, so a request without one comes from another client.
  if (options_.local && !header.host.empty() && !IsOurs(HostOfAuthority(header.host)))
    return fmt::format(
        "this server does not answer as {}: use localhost, or start it with --allow-host {}",
        Quote(header.host), Printable(HostOfAuthority(header.host)));
  if (!changes) return std::nullopt;
  if (header.fetch_site == "cross-site" || header.fetch_site == "same-site")
    return "a page of another origin must not change anything here";
  if (header.origin.empty()) return std::nullopt;
  const std::size_t scheme = header.origin.find("://");
  const std::string authority =
      scheme == std::string::npos ? "" : LowerCase(header.origin.substr(scheme + 3));
  const bool same = !authority.empty() && authority == LowerCase(header.host);
  const bool allowed =
      std::ranges::find(options_.hosts, HostOfAuthority(authority)) != options_.hosts.end();
  if (same || (allowed && !authority.empty())) return std::nullopt;
  return fmt::format("a page of {} must not change anything here", Quote(header.origin));
}

std::optional<Answer> AccessControl::RefuseLogin(const Request& request, Dialect dialect,
                                                 Visitor& visitor) {
  const std::string_view token = BearerToken(request.authorization);
  if (token.empty()) {
    ++missing_tokens_;
    Answer answer =
        RefusalAnswer(401, "unauthorized",
                      "this server wants a token: send Authorization: Bearer <token>", dialect);
    answer.headers.emplace_back("WWW-Authenticate", "Bearer");
    return answer;
  }
  const auto entry = options_.tokens->current()->Find(token);
  using Verdict = LoginLimiter::Verdict;
  const Verdict by_itself = entry ? Verdict::kAccept : Verdict::kReject;
  const Verdict verdict = options_.logins == nullptr
                              ? by_itself
                              : options_.logins->Judge(request.address, entry ? entry->name : "");
  if (verdict == Verdict::kTooMany) {
    ++refused_logins_;
    Answer answer = RefusalAnswer(
        429, "too_many_failures",
        "too many wrong tokens came from this address: wait before you try another", dialect);
    answer.headers.emplace_back("Retry-After", "3");
    return answer;
  }
  if (verdict == Verdict::kReject) {
    ++wrong_tokens_;
    Answer answer = RefusalAnswer(
        401, "unauthorized",
        "this token is not known here: it was mistyped or revoked, or belongs to another server",
        dialect);
    answer.headers.emplace_back("WWW-Authenticate", "Bearer error=\"invalid_token\"");
    return answer;
  }
  visitor = {.user = entry->name, .name_space = entry->name_space, .role = entry->role};
  return std::nullopt;
}

// Administrators choose the name space they act in; others may repeat that of their token.
std::optional<Answer> AccessControl::RefuseNameSpace(const Request& request, Dialect dialect,
                                                     Visitor& visitor) {
  if (!request.wanted_name_space) return std::nullopt;
  const std::string& wanted = *request.wanted_name_space;
  if (const Status valid = CheckIdentifier("Zeus-Namespace", wanted); !valid.ok())
    return RefusalAnswer(400, "bad_request", valid.error().message, dialect);
  if (visitor.role != Role::kAdmin && wanted != visitor.name_space)
    return RefusalAnswer(403, "permission_denied",
                         fmt::format("the token {} is not for the name space {}",
                                     Quote(visitor.user), Quote(wanted)),
                         dialect);
  visitor.name_space = wanted;
  return std::nullopt;
}

std::optional<Answer> AccessControl::Refuse(const Request& request, const Route& route,
                                            Visitor& visitor) {
  if (route.access == Access::kOpen) return std::nullopt;
  if (const auto why = guard_.Refuse(request, route.access == Access::kWrite))
    return RefusalAnswer(403, "permission_denied", *why, route.dialect);
  if (options_.tokens != nullptr)
    if (auto refusal = RefuseLogin(request, route.dialect, visitor)) return refusal;
  if (auto refusal = RefuseNameSpace(request, route.dialect, visitor)) return refusal;
  if (route.access == Access::kWrite && visitor.role == Role::kRead)
    return RefusalAnswer(403, "permission_denied",
                         fmt::format("the token {} is for reading only", Quote(visitor.user)),
                         route.dialect);
  if (route.access == Access::kAdmin && visitor.role != Role::kAdmin)
    return RefusalAnswer(403, "permission_denied",
                         fmt::format("the token {} is not an administrator's", Quote(visitor.user)),
                         route.dialect);
  return std::nullopt;
}

bool AccessControl::HasToken(const Request& request) const {
  return options_.tokens != nullptr &&
         options_.tokens->current()->Find(BearerToken(request.authorization)).has_value();
}

AccessControl::Counts AccessControl::counts() const {
  return {.missing_tokens = missing_tokens_,
          .wrong_tokens = wrong_tokens_,
          .refused_logins = refused_logins_};
}

}  // namespace zeus::http
