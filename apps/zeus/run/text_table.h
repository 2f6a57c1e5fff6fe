#pragma once

#include <string>
#include <vector>

namespace zeus::cli {

enum class Align { kLeft, kRight };

// Columns as wide as their widest cell, two blanks apart, each row one line. Width is counted in
// characters of UTF-8. Rows have as many cells as `alignment`.
std::string AlignedRows(const std::vector<Align>& alignment,
                        const std::vector<std::vector<std::string>>& rows);

}  // namespace zeus::cli
