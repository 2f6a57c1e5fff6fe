#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "zeus/base/json.h"
#include "zeus/base/result.h"
#include "zeus/base/text.h"

namespace zeus {

// An error that begins with the name of the field, so that a form can point at it.
inline Error FieldError(std::string_view field, std::string_view why) {
  return Error{ErrorCode::kInvalidArgument, fmt::format("{}: {}", field, why)};
}

// Reads an object from outside, field by field, and remembers the first thing that is wrong with
// it: JSON numbers convert silently in every direction, but people who write "32", 3.5 or a name
// that does not exist would be misunderstood. Messages begin with the name of the field and a
// colon.
//
//   FieldReader reader("a job", json);
//   reader.Read("eta", spec.eta);        // Absent: keeps what it is.
//   reader.Require("energy_joules", energy);
//   ZEUS_RETURN_IF_ERROR(reader.Finish());
//
// The object must outlive the reader.
class FieldReader {
 public:
  // `what` describes the object in messages: "a job".
  FieldReader(std::string what, const Json& object) : what_(std::move(what)), object_(object) {
    if (!object.is_object()) Fail({ErrorCode::kInvalidArgument, what_ + " must be a JSON object"});
  }

  template <class T>
  void Read(const char* field, T& target) {
    if (const Json* value = Find(field)) Store(field, *value, target);
  }
  // Treats null like an absent field.
  template <class T>
  void ReadUnlessNull(const char* field, T& target) {
    const Json* value = Find(field);
    if (value != nullptr && !value->is_null()) Store(field, *value, target);
  }
  template <class T>
  void Require(const char* field, T& target) {
    if (const Json* value = Find(field))
      Store(field, *value, target);
    else
      Fail(field, fmt::format("{} needs it", what_));
  }

  void Fail(std::string_view field, std::string_view why) { Fail(FieldError(field, why)); }

  // Returns the first error. Fields that were never read are an error, too.
  Status Finish() {
    if (error_) return *error_;
    for (const auto& [field, value] : object_.items()) {
      if (!known_.contains(field)) {
        Fail(Printable(field), "is not a field of " + what_);
        return *error_;
      }
    }
    return Ok();
  }
  // Returns the first error, and allows fields that were never read.
  Status FinishAllowingOthers() {
    if (error_) return *error_;
    return Ok();
  }

 private:
  const Json* Find(const char* field) {
    known_.insert(field);
    if (!object_.is_object()) return nullptr;
    const auto found = object_.find(field);
    return found == object_.end() ? nullptr : &*found;
  }

  void Store(const char* field, const Json& value, bool& target) {
    if (!value.is_boolean()) return Fail(field, "must be true or false");
    target = value.get<bool>();
  }
  void Store(const char* field, const Json& value, std::string& target) {
    if (!value.is_string()) return Fail(field, "must be text");
    target = value.get<std::string>();
  }
  void Store(const char* field, const Json& value, double& target) {
    if (!value.is_number()) return Fail(field, "must be a number");
    target = value.get<double>();
  }
  template <class T>
    requires std::is_integral_v<T>
  void Store(const char* field, const Json& value, T& target) {
    if (!value.is_number_integer()) return Fail(field, "must be a whole number");
    if (value.is_number_unsigned()) {
      const auto number = value.get<std::uint64_t>();
      if (!std::in_range<T>(number)) return Fail(field, "is too large");
      target = static_cast<T>(number);
      return;
    }
    const auto number = value.get<std::int64_t>();
    if (!std::in_range<T>(number)) return Fail(field, "is too small");
    target = static_cast<T>(number);
  }
  // JSON that the caller reads itself.
  void Store(const char* /*field*/, const Json& value, Json& target) { target = value; }
  // Null is stored as nullopt.
  template <class T>
  void Store(const char* field, const Json& value, std::optional<T>& target) {
    target.reset();
    if (!value.is_null()) Store(field, value, target.emplace());
  }
  template <class T>
  void Store(const char* field, const Json& value, std::vector<T>& target) {
    if (!value.is_array()) return Fail(field, "must be a list");
    target.clear();
    for (const Json& element : value) Store(field, element, target.emplace_back());
  }
  void Store(const char* field, const Json& value, std::map<std::string, std::string>& target) {
    if (!value.is_object()) return Fail(field, "must be an object of texts");
    target.clear();
    for (const auto& [key, text] : value.items()) Store(field, text, target[key]);
  }

  void Fail(Error error) {
    if (!error_) error_ = std::move(error);
  }

  std::string what_;
  const Json& object_;
  std::set<std::string, std::less<>> known_{};
  std::optional<Error> error_{};
};

}  // namespace zeus
