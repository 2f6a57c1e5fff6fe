#include "zeus/wire/body.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "zeus/base/json.h"
#include "zeus/base/text.h"

namespace zeus::wire {
namespace {

// The shape of a text, before it is parsed. The parser accepts any depth, but copying and printing
// its result takes stack in proportion to it.
struct Shape {
  int deepest = 0;         // The deepest nesting of brackets outside of strings.
  std::size_t values = 0;  // An upper bound on the number of values.
};

Shape MeasureShape(std::string_view text) {
  int depth = 0;
  Shape shape;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      ++shape.values;
      shape.deepest = std::max(shape.deepest, ++depth);
    } else if (c == '}' || c == ']') {
      --depth;
    } else if (c == ',') {
      ++shape.values;
    }
  }
  return shape;
}

// Reads a text as the parser does, and notes what error messages need to name a field. (The
// callback of the parser itself would take a time that grows with the square of an array's length.)
class FieldWatch final : public nlohmann::json_sax<Json> {
 public:
  // The field of the outermost object whose value is not JSON; empty when there is none.
  const std::string& open() const { return open_; }
  // A field that an object has twice; empty when there is none. Proxies and servers differ in which
  // of the two values they use, so such a body is refused.
  const std::string& repeated() const { return repeated_; }
  // Whether an object has more than kMostFields.
  bool has_large_object() const { return has_large_object_; }

  bool null() override { return EndValue(); }
  bool boolean(bool) override { return EndValue(); }
  bool number_integer(number_integer_t) override { return EndValue(); }
  bool number_unsigned(number_unsigned_t) override { return EndValue(); }
  bool number_float(number_float_t, const string_t&) override { return EndValue(); }
  bool string(string_t&) override { return EndValue(); }
  bool binary(binary_t&) override { return EndValue(); }
  bool start_object(std::size_t) override {
    seen_.emplace_back();
    return Enter();
  }
  bool key(string_t& name) override {
    if (depth_ == 1) open_ = name;
    std::set<std::string>& names = seen_.back();
    if (!names.insert(name).second) repeated_ = name;
    has_large_object_ = has_large_object_ || names.size() > kMostFields;
    return !has_large_object_;
  }
  bool end_object() override {
    seen_.pop_back();
    return Leave();
  }
  bool start_array(std::size_t) override { return Enter(); }
  bool end_array() override { return Leave(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  bool Enter() {
    ++depth_;
    return true;
  }
  bool Leave() {
    --depth_;
    return EndValue();
  }
  bool EndValue() {
    if (depth_ == 1) open_.clear();
    return true;
  }

  int depth_ = 0;
  std::vector<std::set<std::string>> seen_{};  // The field names of each open object.
  std::string open_{};
  std::string repeated_{};
  bool has_large_object_ = false;
};

}  // namespace

Result<Json> ParseBody(std::string_view text, std::size_t most_values) {
  const Shape shape = MeasureShape(text);
  if (shape.deepest > kDeepestNesting)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("the body is nested more than {} levels deep", kDeepestNesting)};
  if (shape.values > most_values)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("the body has more than {} values", most_values)};
  FieldWatch watch;
  Json::sax_parse(text, &watch);
  if (watch.has_large_object())
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("an object of the body has more than {} fields", kMostFields)};
  Result<Json> json = ParseJson(text);
  if (!json.ok()) {
    const std::string& field = watch.open();
    if (field.empty()) return json.error().While("the body is no JSON object");
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}: is no JSON value (NaN and infinities are none): {}",
                             Printable(field), json.error().message)};
  }
  if (!json.value().is_object())
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("the body must be a JSON object, not {}", json.value().type_name())};
  if (!watch.repeated().empty())
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}: is there more than once", Printable(watch.repeated()))};
  return json;
}

}  // namespace zeus::wire
