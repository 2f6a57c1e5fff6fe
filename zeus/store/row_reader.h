#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "zeus/base/clock.h"
#include "zeus/base/json.h"
#include "zeus/base/result.h"
#include "zeus/base/text.h"
#include "zeus/store/sql_connection.h"

namespace zeus {

// Takes the values of a row from left to right. The first that is of another type than asked for
// is remembered; what comes after is default values until status() is asked.
class RowReader {
 public:
  RowReader(std::string_view table, SqlRow row) : table_(table), row_(std::move(row)) {}

  std::string Text() { return Take<std::string>(); }
  std::string TextOrNothing() { return TakeOptional<std::string>().value_or(std::string()); }
  std::int64_t Integer() { return Take<std::int64_t>(); }
  int SmallInteger() { return static_cast<int>(Take<std::int64_t>()); }
  std::optional<std::int64_t> OptionalInteger() { return TakeOptional<std::int64_t>(); }
  double Real() { return Take<double>(); }
  std::optional<double> OptionalReal() { return TakeOptional<double>(); }
  WallTime Time() { return WallTime(std::chrono::microseconds(Integer())); }
  std::optional<WallTime> OptionalTime() {
    const auto time = OptionalInteger();
    if (!time) return std::nullopt;
    return WallTime(std::chrono::microseconds(*time));
  }
  zeus::Json JsonValue() { return Checked(ParseJson(Text())); }

  // A value of the program that is stored by its name.
  template <class T>
  T Named(std::optional<T> (*find)(std::string_view)) {
    const auto found = find(Text());
    if (!found) Complain("unknown name");
    return found.value_or(T{});
  }
  // What may fail to be read.
  template <class T>
  T Checked(Result<T> value) {
    if (value.ok()) return std::move(value).value();
    Complain(value.error().message);
    return T{};
  }

  Status status() const {
    if (!wrong_) return Ok();
    return Error{ErrorCode::kInternal, "a row of table " + Quote(table_) + " makes no sense (" +
                                           *wrong_ +
                                           "): restore a copy of the database (docs/store.md)"};
  }

 private:
  template <class T>
  T Take() {
    if (next_ < row_.size())
      if (T* value = std::get_if<T>(&row_[next_++])) return std::move(*value);
    Complain("of another type");
    return T{};
  }
  template <class T>
  std::optional<T> TakeOptional() {
    if (next_ < row_.size() && std::holds_alternative<std::monostate>(row_[next_])) {
      ++next_;
      return std::nullopt;
    }
    return Take<T>();
  }
  void Complain(const std::string& why) {
    if (!wrong_) wrong_ = "value " + std::to_string(next_) + ": " + why;
  }

  std::string_view table_;
  SqlRow row_;
  std::size_t next_ = 0;
  std::optional<std::string> wrong_;
};

}  // namespace zeus
