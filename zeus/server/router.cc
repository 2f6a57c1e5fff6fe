#include "zeus/server/router.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace zeus::server {
namespace {

bool IsParameter(std::string_view segment) {
  return segment.starts_with('{') && segment.ends_with('}');
}

std::optional<std::vector<std::string>> Match(const std::vector<std::string>& pattern,
                                              const std::vector<std::string>& segments) {
  if (pattern.size() != segments.size()) return std::nullopt;
  std::vector<std::string> parameters;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (IsParameter(pattern[i])) {
      if (segments[i].empty()) return std::nullopt;
      parameters.push_back(segments[i]);
    } else if (pattern[i] != segments[i]) {
      return std::nullopt;
    }
  }
  return parameters;
}

}  // namespace

void Router::Add(Route route) {
  patterns_.push_back(ParseTarget(route.pattern).value().segments);
  routes_.push_back(std::move(route));
}

RouteMatch Router::Find(std::string_view method, const std::vector<std::string>& segments) const {
  RouteMatch match;
  for (std::size_t i = 0; i < routes_.size(); ++i) {
    auto parameters = Match(patterns_[i], segments);
    if (!parameters) continue;
    const Route& route = routes_[i];
    const bool has_head = route.method == "GET" && route.access != Access::kWrite;
    if (route.method == method || (has_head && method == "HEAD"))
      return {.route = &route, .parameters = *std::move(parameters)};
    match.allowed.emplace_back(route.method);
    if (has_head) match.allowed.emplace_back("HEAD");
  }
  std::ranges::sort(match.allowed);
  return match;
}

}  // namespace zeus::server
