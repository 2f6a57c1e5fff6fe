#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace zeus {

// Characters of UTF-8.
std::size_t TextWidth(std::string_view text);

enum class Align { kLeft, kRight };

// Columns as wide as their widest cell, two blanks apart, each row one line. Width is counted in
// characters of UTF-8. Rows have as many cells as `alignment`.
std::string AlignedRows(const std::vector<Align>& alignment,
                        const std::vector<std::vector<std::string>>& rows);

}  // namespace zeus
