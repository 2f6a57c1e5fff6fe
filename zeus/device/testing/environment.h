#pragma once

#include <map>
#include <optional>
#include <string>

#include "zeus/device/node.h"

namespace zeus::testing {

// The environment of a process that a test makes up. Must outlive the Surroundings it is given to.
using Variables = std::map<std::string, std::string>;

inline auto EnvironmentOf(const Variables& variables) {
  return [&variables](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
}

}  // namespace zeus::testing
