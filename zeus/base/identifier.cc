#include "zeus/base/identifier.h"

#include <fmt/format.h>

#include <algorithm>

#include "zeus/base/field_reader.h"
#include "zeus/base/text.h"

namespace zeus {
namespace {

constexpr std::size_t kLongest = 200;

bool IsAllowed(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("-_.:").find(c) != std::string_view::npos;
}

}  // namespace

Status CheckIdentifier(std::string_view field, std::string_view text) {
  if (text.size() > kLongest)
    return FieldError(field, fmt::format("is longer than {} characters", kLongest));
  if (!std::all_of(text.begin(), text.end(), IsAllowed) || text == "." || text == "..")
    return FieldError(
        field, fmt::format("{} has characters other than letters, digits and -_.:", Quote(text)));
  return Ok();
}

std::string ScopedId(std::string_view name_space, std::string_view id) {
  if (name_space.empty()) return std::string(id);
  return fmt::format("{}{}{}", name_space, kNameSpaceEnd, id);
}

std::string_view NameSpaceOf(std::string_view id) {
  const std::size_t end = id.find(kNameSpaceEnd);
  return end == std::string_view::npos ? std::string_view() : id.substr(0, end);
}

std::string_view WithoutNameSpace(std::string_view id) {
  return id.substr(id.find(kNameSpaceEnd) + 1);  // npos + 1 is 0.
}

Status CheckScopedIdentifier(std::string_view field, std::string_view text) {
  const std::size_t end = text.find(kNameSpaceEnd);
  if (end != std::string_view::npos && end > 0 && end + 1 < text.size())
    ZEUS_RETURN_IF_ERROR(CheckIdentifier(field, text.substr(0, end)));
  else if (end != std::string_view::npos)
    return CheckIdentifier(field, text);
  return CheckIdentifier(field, WithoutNameSpace(text));
}

}  // namespace zeus
