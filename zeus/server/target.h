#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/result.h"

namespace zeus::server {

// The target of a request, "/v1/jobs/a%20b?limit=5", taken apart and decoded.
struct Target {
  std::vector<std::string> segments{};  // {"v1", "jobs", "a b"}
  std::map<std::string, std::string> query{};
};

// kInvalidArgument for targets that are no path, hold broken escapes, or name a parameter twice.
Result<Target> ParseTarget(std::string_view text);

}  // namespace zeus::server
