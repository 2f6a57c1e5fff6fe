#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/store/sql_connection.h"

// Texts of statements, and values on their way to rows and back.
namespace zeus {

// "$3, $4, $5"
std::string Placeholders(int first, int last);
std::string InsertInto(const std::string& table, const std::string& columns, int count);

// kInvalidArgument when a text is not UTF-8, kInternal when a number is not finite: JSON knows
// neither, and a state that comes back different would be worse than none.
Result<std::string> JsonText(const Json& json);

// What one engine would refuse or change the other must not take: PostgreSQL knows neither other
// encodings nor zero bytes, and would cut a text at one; SQLite has no NaN. `what` has the values.
Status CheckValues(const SqlRow& row, std::string_view what);

inline std::int64_t SqlTime(WallTime time) { return time.time_since_epoch().count(); }

// Which rows belong to a name space (identifier.h), by their id.
struct SqlCondition {
  std::string sql{};
  SqlRow values{};
};
SqlCondition InNameSpace(const std::string& name_space);

// All rows of an answer by a function that reads one.
template <class T>
Result<std::vector<T>> AllFrom(SqlAnswer answer, Result<T> (*from)(SqlRow)) {
  std::vector<T> all;
  all.reserve(answer.rows.size());
  for (SqlRow& row : answer.rows) {
    ZEUS_TRY(T one, from(std::move(row)));
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace zeus
