#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>

#include "zeus/base/result.h"

namespace zeus::server {

// Parameters of a query: kInvalidArgument, naming the parameter, when one makes no sense. Which
// ones there may be is checked against the route.
using Query = std::map<std::string, std::string>;

struct IntegerRange {
  std::int64_t min = 0;
  std::int64_t max = std::numeric_limits<std::int64_t>::max();
};

std::optional<std::string> FindParameter(const Query& query, const std::string& name);
Result<std::string> RequireParameter(const Query& query, const std::string& name);
Result<std::int64_t> IntegerParameter(const Query& query, const std::string& name,
                                      std::int64_t otherwise, IntegerRange range = {});

// A finite number greater than 0 that must be there.
Result<double> PositiveParameter(const Query& query, const std::string& name);

// How many entries a page has: `limit`, from 1 to 1000.
Result<int> PageSize(const Query& query);

// The number of a trial, from a path.
Result<std::int64_t> TrialNumber(const std::string& text);

}  // namespace zeus::server
