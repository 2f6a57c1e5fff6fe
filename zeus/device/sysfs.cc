#include "zeus/device/sysfs.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <system_error>

namespace zeus {

std::vector<std::filesystem::path> ListEntries(const std::filesystem::path& directory,
                                               std::string_view prefix) {
  std::vector<std::filesystem::path> entries;
  std::error_code error;
  std::filesystem::directory_iterator entry(directory, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    if (entry->path().filename().string().starts_with(prefix)) entries.push_back(entry->path());
  }
  std::ranges::sort(entries, [](const auto& a, const auto& b) {
    const std::string left = a.filename().string();
    const std::string right = b.filename().string();
    return left.size() != right.size() ? left.size() < right.size() : left < right;
  });
  return entries;
}

bool IsPrintable(std::string_view text) {
  return std::ranges::all_of(
      text, [](char c) { return std::isprint(static_cast<unsigned char>(c)) != 0; });
}

}  // namespace zeus
