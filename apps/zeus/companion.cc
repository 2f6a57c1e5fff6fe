#include "apps/zeus/companion.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "zeus/base/file.h"
#include "zeus/base/text.h"

namespace zeus::cli {

Result<std::filesystem::path> FindCompanion(const std::filesystem::path& file) {
  std::error_code failure;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", failure);
  if (failure) return Error{ErrorCode::kUnavailable, "cannot tell where the zeus program is"};
  const auto folder = program.parent_path();
  const auto usual = folder.parent_path() / ZEUS_INSTALL_LIBDIR / file;
  for (const auto& place : {usual, folder.parent_path() / "lib" / file, folder / file.filename()})
    if (std::filesystem::exists(place, failure)) return place;
  return Error{ErrorCode::kNotFound,
               fmt::format("a part of Zeus is missing: {} does not exist; ./dev build builds it, "
                           "or install Zeus completely",
                           Printable(usual.string()))};
}

Result<std::vector<std::string>> OwnCommandLine() {
  ZEUS_TRY(const std::string text, ReadSmallFile("/proc/self/cmdline", std::size_t{8} << 20U));
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\0', begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

}  // namespace zeus::cli
