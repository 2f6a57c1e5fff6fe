#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "apps/zeus/terminal.h"
#include "zeus/base/result.h"
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

// Standard output as a place for a table that changes: a terminal shows it in place, with the
// cursor hidden until the end; in a pipe each table follows the last. One owner.
class Screen {
 public:
  Screen();
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  // The width of the terminal at this moment; nullopt in a pipe, where rows may have any length.
  std::optional<std::size_t> width() const;

  Status Show(const std::vector<std::string>& rows);

 private:
  std::optional<TerminalSize> CurrentSize() const;
  std::string Redraw(const std::vector<std::string>& rows, TerminalSize size);

  const bool terminal_;
  std::optional<TerminalSize> last_size_;
  std::size_t shown_rows_ = 0;
};

}  // namespace zeus::cli
