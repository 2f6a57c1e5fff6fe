#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "zeus/device/node.h"
#include "zeus/export/sample.h"

namespace zeus::cli {

// A sample as a table for people: a title, then a row per device. What a device cannot tell is "-",
// and a device that cannot be read says why.
class PowerTable {
 public:
  // GPUs that were lost before the start have a row with the reason, too.
  explicit PowerTable(const std::vector<Absence>& absent);

  // Leaves out the columns that matter least, and then cuts, until rows fit the width.
  std::vector<std::string> Rows(const Sample& sample, std::optional<std::size_t> width) const;

 private:
  std::vector<Absence> lost_;
};

// "12.0 s: gpu:0 1234 ± 31 J, gpu:1 …": what every device used since recording began.
std::string Summary(const Sample& sample);

// The first `width` characters of UTF-8 text.
std::string Cut(const std::string& text, std::size_t width);

}  // namespace zeus::cli
