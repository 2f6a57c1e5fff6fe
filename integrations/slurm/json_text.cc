#include "integrations/slurm/json_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>

namespace zeus::slurm {
namespace {

constexpr std::size_t kLongestText = 200;
constexpr int kDeepest = 64;

// A place in a JSON text. Functions that fail move it to the end.
class JsonCursor {
 public:
  explicit JsonCursor(std::string_view text) : rest_(text) {}

  bool Skip(char expected) {
    SkipSpace();
    if (!rest_.starts_with(expected)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  // Returns the whole value that begins here, and moves behind it.
  std::optional<std::string_view> Value() {
    SkipSpace();
    const std::string_view begin = rest_;
    if (!SkipValue()) {
      rest_ = {};
      return std::nullopt;
    }
    return begin.substr(0, begin.size() - rest_.size());
  }

 private:
  void SkipSpace() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size()));
  }

  bool SkipString() {
    std::size_t at = 1;
    while (at < rest_.size() && rest_[at] != '"') at += rest_[at] == '\\' ? 2U : 1U;
    if (at >= rest_.size()) return false;
    rest_.remove_prefix(at + 1);
    return true;
  }

  // Brackets need only be balanced: who reads a part checks what it takes.
  bool SkipValue() {
    int depth = 0;
    do {
      if (rest_.empty()) return false;
      const char first = rest_.front();
      const bool opens = first == '{' || first == '[';
      const bool closes = first == '}' || first == ']';
      depth += static_cast<int>(opens) - static_cast<int>(closes);
      if (depth < 0 || depth > kDeepest) return false;
      const bool separates = opens || closes || (depth > 0 && (first == ',' || first == ':'));
      if (separates)
        rest_.remove_prefix(1);
      else if (!SkipScalar())
        return false;
      if (depth > 0) SkipSpace();
    } while (depth > 0);
    return true;
  }

  bool SkipScalar() {
    if (rest_.front() == '"') return SkipString();
    const std::size_t end = std::min(rest_.find_first_of(",:]}[{\" \t\r\n"), rest_.size());
    rest_.remove_prefix(end);
    return end > 0;
  }

  std::string_view rest_;
};

// The value of a member of an object.
std::optional<std::string_view> Member(std::string_view object, std::string_view name) {
  JsonCursor cursor(object);
  if (!cursor.Skip('{')) return std::nullopt;
  for (;;) {
    const auto key = cursor.Value();
    if (!key || key->size() < 2 || key->front() != '"' || !cursor.Skip(':')) return std::nullopt;
    const auto value = cursor.Value();
    if (!value) return std::nullopt;
    if (key->substr(1, key->size() - 2) == name) return value;
    if (!cursor.Skip(',')) return std::nullopt;
  }
}

}  // namespace

std::optional<std::string_view> FindJson(std::string_view json,
                                         std::initializer_list<std::string_view> names) {
  std::optional<std::string_view> found = json;
  for (const std::string_view name : names) {
    found = Member(*found, name);
    if (!found) return std::nullopt;
  }
  return found;
}

std::optional<double> FindJsonNumber(std::string_view json,
                                     std::initializer_list<std::string_view> names) {
  const auto text = FindJson(json, names);
  if (!text) return std::nullopt;
  double number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc() || end != text->data() + text->size() || !std::isfinite(number))
    return std::nullopt;
  return number;
}

std::optional<std::string> ToPlainText(std::string_view json) {
  if (json.size() < 2 || json.front() != '"' || json.back() != '"') return std::nullopt;
  const std::string_view text = json.substr(1, json.size() - 2);
  if (text.find_first_of("\\\"") != std::string_view::npos) return std::nullopt;
  return std::string(text);
}

std::vector<std::string_view> JsonElements(std::string_view json) {
  std::vector<std::string_view> elements;
  JsonCursor cursor(json);
  if (!cursor.Skip('[') || cursor.Skip(']')) return elements;
  do {
    const auto value = cursor.Value();
    if (!value) break;
    elements.push_back(*value);
  } while (cursor.Skip(','));
  return elements;
}

std::string ToJsonText(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text.substr(0, kLongestText)) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c >= ' ' && c <= '~' ? c : '?';
  }
  return quoted + '"';
}

}  // namespace zeus::slurm
