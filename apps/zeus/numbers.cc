#include "apps/zeus/numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "zeus/base/text.h"

namespace zeus::cli {
namespace {

std::string Refusal(const char* kind, const auto& min, const auto& max, const std::string& text) {
  return fmt::format("must be {} from {} to {}, not {}", kind, min, max, Quote(text));
}

}  // namespace

Validator NumberBetween(double min, double max) {
  return {[min, max](std::string& text) -> std::string {
            const auto number = ParseDouble(text);
            if (number.ok() && std::isfinite(number.value()) && number.value() >= min &&
                number.value() <= max) {
              return "";
            }
            return Refusal("a number", min, max, text);
          },
          fmt::format("{} to {}", min, max)};
}

Validator WholeNumberBetween(std::uint64_t min, std::uint64_t max) {
  return {[min, max](std::string& text) -> std::string {
            const auto number = ParseUnsigned(text);
            if (!number.ok() || number.value() < min || number.value() > max)
              return Refusal("a whole number", min, max, text);
            text = fmt::to_string(number.value());  // CLI11 would read "010" as octal.
            return "";
          },
          fmt::format("{} to {}", min, max)};
}

Validator OneOf(std::vector<std::string> words) {
  std::string set = fmt::format("{{{}}}", fmt::join(words, ","));
  return {[words = std::move(words), set](std::string& text) -> std::string {
            return std::ranges::find(words, text) != words.end() ? "" : text + " not in " + set;
          },
          set};
}

Validator NotEmpty() {
  return {[](std::string& text) -> std::string {
            return Trim(text).empty() ? "is empty: give it a value or leave it out" : "";
          },
          ""};
}

}  // namespace zeus::cli
