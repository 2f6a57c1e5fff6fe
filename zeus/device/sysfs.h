#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

namespace zeus {

// Entries of a directory whose names start with `prefix`, in natural order (card2 before card10).
// Empty when the directory is missing or cannot be listed: the caller reports what it looked for.
std::vector<std::filesystem::path> ListEntries(const std::filesystem::path& directory,
                                               std::string_view prefix = {});

// Whether every byte is a printable ASCII character: what goes into names and messages.
bool IsPrintable(std::string_view text);

}  // namespace zeus
