#include "apps/zeus/companion.h"

#include <fmt/format.h>

#include <system_error>

#include "zeus/base/own_program.h"
#include "zeus/base/text.h"

namespace zeus::cli {

Result<std::filesystem::path> FindCompanion(const std::filesystem::path& file) {
  ZEUS_TRY(const auto program, OwnProgram());
  std::error_code failure;
  const auto folder = program.parent_path();
  const auto usual = folder.parent_path() / ZEUS_INSTALL_LIBDIR / file;
  for (const auto& place : {usual, folder.parent_path() / "lib" / file, folder / file.filename()})
    if (std::filesystem::exists(place, failure)) return place;
  return Error{ErrorCode::kNotFound,
               fmt::format("a part of Zeus is missing: {} does not exist; ./dev build builds it, "
                           "or install Zeus completely",
                           Printable(usual.string()))};
}

}  // namespace zeus::cli
