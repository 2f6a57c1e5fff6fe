#include "zeus/base/executable.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <system_error>

#include "zeus/base/text.h"

namespace zeus {
namespace {

constexpr const char* kUsualPath = "/bin:/usr/bin";  // As execvp() has it where PATH is not set.

// The errno with which exec() would fail; 0 when it would not.
int ReasonAgainst(const std::filesystem::path& file) {
  std::error_code failure;
  const auto status = std::filesystem::status(file, failure);
  if (!std::filesystem::exists(status)) return failure ? failure.value() : ENOENT;
  if (std::filesystem::is_directory(status)) return EACCES;
  return ::access(file.c_str(), X_OK) == 0 ? 0 : errno;
}

}  // namespace

Result<std::filesystem::path> FindExecutable(const std::string& command,
                                             const Environment& environment) {
  if (command.find('/') != std::string::npos) {
    const int reason = ReasonAgainst(command);
    if (reason != 0) return CannotExecute(command, reason);
    return std::filesystem::path(command);
  }
  int reason = ENOENT;
  const std::string path = environment("PATH").value_or(kUsualPath);
  for (std::string_view folders = path; !command.empty();) {
    const std::size_t colon = folders.find(':');
    const std::string_view folder = folders.substr(0, colon);  // An empty one is the present one.
    auto file = std::filesystem::path(folder.empty() ? "." : folder) / command;
    const int against = ReasonAgainst(file);
    if (against == 0) return file;
    if (against == EACCES) reason = EACCES;  // exec() goes on searching, and remembers.
    if (colon == std::string_view::npos) break;
    folders.remove_prefix(colon + 1);
  }
  return CannotExecute(command, reason);
}

Error CannotExecute(const std::string& command, int reason) {
  const bool missing = reason == ENOENT || reason == ENOTDIR;
  if (missing && command.find('/') == std::string::npos)
    return {ErrorCode::kNotFound, fmt::format("{}: no such command in PATH", Printable(command))};
  return {missing ? ErrorCode::kNotFound : ErrorCode::kNotSupported,
          fmt::format("{}: {}", Printable(command),
                      LowerCase(std::generic_category().message(reason)))};
}

}  // namespace zeus
