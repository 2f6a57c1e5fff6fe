#include "zeus/server/routes.h"

#include <fmt/format.h>

#include <cmath>

#include "zeus/base/json.h"
#include "zeus/base/text.h"
#include "zeus/wire/error.h"
#include "zeus/wire/reference.h"

namespace zeus::server {

std::optional<std::string> FindParameter(const Query& query, const std::string& name) {
  const auto found = query.find(name);
  if (found == query.end()) return std::nullopt;
  return found->second;
}

Result<std::string> RequireParameter(const Query& query, const std::string& name) {
  const auto found = query.find(name);
  if (found != query.end() && !found->second.empty()) return found->second;
  return Error{ErrorCode::kInvalidArgument, name + ": is missing"};
}

Result<std::int64_t> IntegerParameter(const Query& query, const std::string& name,
                                      std::int64_t otherwise, IntegerRange range) {
  const auto found = query.find(name);
  if (found == query.end()) return otherwise;
  const auto number = ParseInteger(found->second);
  if (number.ok() && number.value() >= range.min && number.value() <= range.max)
    return number.value();
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("{}: must be a whole number from {} to {}: {}", name, range.min,
                           range.max, Quote(found->second))};
}

Result<double> PositiveParameter(const Query& query, const std::string& name) {
  ZEUS_TRY(const std::string text, RequireParameter(query, name));
  const auto number = ParseDouble(text);
  if (number.ok() && std::isfinite(number.value()) && number.value() > 0) return number.value();
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("{}: must be a number greater than 0: {}", name, Quote(text))};
}

Result<int> PageSize(const Query& query) {
  ZEUS_TRY(const std::int64_t size, IntegerParameter(query, "limit", 100, {.min = 1, .max = 1000}));
  return static_cast<int>(size);
}

Result<JobQuery> ReadJobQuery(const Query& parameters) {
  ZEUS_TRY(const int limit, PageSize(parameters));
  JobQuery query{.after = FindParameter(parameters, "after").value_or(""), .limit = limit};
  const auto label = FindParameter(parameters, "label");
  if (!label) return query;
  const auto colon = label->find(':');
  query.label = label->substr(0, colon);
  if (colon != std::string::npos) query.label_value = label->substr(colon + 1);
  return query;
}

Result<std::int64_t> TrialNumber(const std::string& text) {
  const auto number = ParseInteger(text);
  if (number.ok() && number.value() > 0) return number.value();
  return Error{ErrorCode::kNotFound, fmt::format("trial: {} is no number of a trial", Quote(text))};
}

http::Answer ErrorAnswer(const Error& error, http::Dialect dialect) {
  const int status = wire::StatusOf(error.code);
  http::Answer answer = http::JsonAnswer(status, dialect == http::Dialect::kOurs
                                                     ? wire::ToJson(error)
                                                     : wire::reference::ErrorToJson(error, "body"));
  if (error.retryable()) answer.headers.emplace_back("Retry-After", "1");
  return answer;
}

}  // namespace zeus::server
