#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "apps/zeus/terminal.h"
#include "zeus/base/result.h"

namespace zeus::cli {

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
