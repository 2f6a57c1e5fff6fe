#include "zeus/daemon/scope.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "zeus/base/text.h"

namespace zeus::daemon {
namespace {

// In the order of the enum.
constexpr std::array<std::string_view, 7> kNames = {
    "gpu-read", "gpu-control", "cpu-read", "cpu-control", "job", "budget", "admin"};

}  // namespace

std::string_view Name(Scope scope) { return kNames.at(static_cast<std::size_t>(scope)); }

Result<Scope> ParseScope(std::string_view name) {
  const auto found = std::ranges::find(kNames, name);
  if (found == kNames.end())
    return InvalidArgument(
        fmt::format("{} is no scope: there are {}", Quote(name), fmt::join(kNames, ", ")));
  return static_cast<Scope>(found - kNames.begin());
}

std::vector<std::string> ScopeSet::names() const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kNames.size(); ++i)
    if (Has(static_cast<Scope>(i))) names.emplace_back(kNames.at(i));
  return names;
}

}  // namespace zeus::daemon
