#include "zeus/device/printable.h"

#include <fmt/format.h>

#include <cctype>

namespace zeus {

std::string Printable(std::string_view text) {
  constexpr std::size_t kShown = 200;
  std::string printable;
  for (const char c : text.substr(0, kShown)) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isprint(byte) != 0) {
      printable += c;
    } else {
      printable += fmt::format("\\x{:02x}", byte);
    }
  }
  if (text.size() > kShown) printable += "...";
  return printable;
}

}  // namespace zeus
