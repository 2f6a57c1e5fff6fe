#include "zeus/wire/llm/json_cursor.h"

#include <charconv>
#include <cstring>

#include "zeus/base/json.h"

namespace zeus::llm {
namespace {

bool IsBlank(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

bool EndsScalar(char c) { return c == ',' || c == '}' || c == ']' || IsBlank(c); }

bool StartsScalar(char c) {
  return (c >= '0' && c <= '9') || c == '-' || (c >= 'a' && c <= 'z') || c == 'N' || c == 'I';
}

}  // namespace

void JsonCursor::Fail() {
  ok_ = false;
  position_ = text_.size();
}

void JsonCursor::SkipBlanks() {
  while (position_ < text_.size() && IsBlank(text_[position_])) ++position_;
}

bool JsonCursor::AtEnd() {
  SkipBlanks();
  return position_ == text_.size();
}

char JsonCursor::Peek() {
  SkipBlanks();
  return position_ < text_.size() ? text_[position_] : '\0';
}

bool JsonCursor::Enter(char bracket) {
  if (Peek() != bracket) {
    Skip();
    return false;
  }
  ++position_;
  return true;
}

bool JsonCursor::EnterObject() { return Enter('{'); }
bool JsonCursor::EnterArray() { return Enter('['); }

bool JsonCursor::NextMember(std::string_view& key) {
  char next = Peek();
  if (next == ',') {
    ++position_;
    next = Peek();
  }
  if (next == '}') {
    ++position_;
    return false;
  }
  if (next != '"') {
    Fail();
    return false;
  }
  const std::size_t start = position_ + 1;
  SkipString();
  if (!ok_) return false;
  key = text_.substr(start, position_ - start - 1);
  if (Peek() != ':') {
    Fail();
    return false;
  }
  ++position_;
  return true;
}

bool JsonCursor::NextElement() {
  char next = Peek();
  if (next == ',') {
    ++position_;
    next = Peek();
  }
  if (next == ']') {
    ++position_;
    return false;
  }
  if (next == '\0') Fail();
  return ok_;
}

// Stands at the opening quotation mark. The next one ends the string unless an odd number of
// backslashes precedes it.
void JsonCursor::SkipString() {
  const char* const begin = text_.data() + position_ + 1;
  const char* const end = text_.data() + text_.size();
  const char* from = begin;
  while (from < end) {
    const auto* const quote =
        static_cast<const char*>(std::memchr(from, '"', static_cast<std::size_t>(end - from)));
    if (quote == nullptr) break;
    const char* backslash = quote;
    while (backslash > begin && backslash[-1] == '\\') --backslash;
    if ((quote - backslash) % 2 == 0) {
      position_ = static_cast<std::size_t>(quote + 1 - text_.data());
      return;
    }
    from = quote + 1;
  }
  Fail();
}

// Stands at an opening bracket.
void JsonCursor::SkipNested() {
  std::size_t depth = 0;
  while (position_ < text_.size()) {
    switch (text_[position_]) {
      case '"':
        SkipString();
        continue;
      case '{':
      case '[':
        ++depth;
        break;
      case '}':
      case ']':
        if (--depth == 0) {
          ++position_;
          return;
        }
        break;
      default:
        break;
    }
    ++position_;
  }
  Fail();
}

std::string_view JsonCursor::ReadScalar() {
  const std::size_t start = position_;
  while (position_ < text_.size() && !EndsScalar(text_[position_])) ++position_;
  return text_.substr(start, position_ - start);
}

void JsonCursor::Skip() {
  const char next = Peek();
  if (next == '"') {
    SkipString();
  } else if (next == '{' || next == '[') {
    SkipNested();
  } else if (StartsScalar(next)) {
    (void)ReadScalar();
  } else {
    Fail();
  }
}

std::optional<double> JsonCursor::ReadNumber() {
  const char next = Peek();
  if (next != '-' && (next < '0' || next > '9')) {
    Skip();
    return std::nullopt;
  }
  const std::string_view text = ReadScalar();
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::string_view> JsonCursor::ReadString() {
  if (Peek() != '"') {
    Skip();
    return std::nullopt;
  }
  const std::size_t start = position_ + 1;
  SkipString();
  if (!ok_) return std::nullopt;
  return text_.substr(start, position_ - start - 1);
}

bool JsonCursor::ReadTrue() {
  if (Peek() != 't') {
    Skip();
    return false;
  }
  return ReadScalar() == "true";
}

std::size_t JsonCursor::ReadLength() {
  std::size_t length = 0;
  if (!EnterArray()) return 0;
  while (NextElement()) {
    Skip();
    ++length;
  }
  return length;
}

std::string Unescaped(std::string_view json_string) {
  std::string text(json_string);
  if (text.find('\\') == std::string::npos) return text;
  const Result<Json> parsed = ParseJson('"' + text + '"');
  if (parsed.ok() && parsed.value().is_string()) return parsed.value().get<std::string>();
  return text;
}

}  // namespace zeus::llm
