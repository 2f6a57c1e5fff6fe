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

}  // namespace zeus
