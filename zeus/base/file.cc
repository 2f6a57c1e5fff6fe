#include "zeus/base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "zeus/base/file_descriptor.h"
#include "zeus/base/text.h"

namespace zeus {
namespace {

Error TooLarge(const std::filesystem::path& path, std::size_t limit) {
  return {ErrorCode::kInvalidArgument,
          fmt::format("{}: larger than {} bytes", Printable(path.string()), limit)};
}

}  // namespace

Error FileError(const std::filesystem::path& path, int error_number) {
  ErrorCode code = ErrorCode::kUnavailable;
  if (error_number == ENOENT || error_number == ENOTDIR) code = ErrorCode::kNotFound;
  if (error_number == EACCES || error_number == EPERM) code = ErrorCode::kPermissionDenied;
  return {code, fmt::format("{}: {}", Printable(path.string()),
                            std::generic_category().message(error_number))};
}

Result<std::string> ReadSmallFile(const std::filesystem::path& path, std::size_t limit) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return FileError(path, errno);
  // One byte more than allowed tells "full" from "too large" without trusting st_size, which
  // sysfs reports as a page whatever the content. The buffer grows with the content: clearing what
  // a large limit allows would cost more than reading.
  constexpr std::size_t kFirstPart = 4096;
  // Only files on a disk are large; what they say of their size is true.
  constexpr std::size_t kLargerThanAttributes = std::size_t{1} << 20;
  struct ::stat status {};
  const bool known_size = limit >= kLargerThanAttributes && ::fstat(file.get(), &status) == 0 &&
                          S_ISREG(status.st_mode);
  if (known_size && static_cast<std::uint64_t>(status.st_size) > limit)
    return TooLarge(path, limit);
  std::string content;
  std::size_t size = 0;
  while (size <= limit) {
    if (size == content.size())
      content.resize(std::min(limit + 1, std::max(kFirstPart, 2 * content.size())));
    const ssize_t got = ::read(file.get(), content.data() + size, content.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FileError(path, errno);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  if (size > limit) return TooLarge(path, limit);
  content.resize(size);
  return content;
}

Result<std::string> ReadLine(const std::filesystem::path& path) {
  constexpr std::size_t kPage = 4096;
  ZEUS_TRY(const std::string content, ReadSmallFile(path, kPage));
  const std::string_view line = Trim(std::string_view(content).substr(0, content.find('\n')));
  if (line.empty()) return Error{ErrorCode::kInvalidArgument, Printable(path.string()) + ": empty"};
  for (const char c : line) {
    if (std::iscntrl(static_cast<unsigned char>(c)) != 0)
      return Error{ErrorCode::kInvalidArgument, Printable(path.string()) + ": not text"};
  }
  return std::string(line);
}

Result<std::int64_t> ReadInteger(const std::filesystem::path& path) {
  ZEUS_TRY(const std::string line, ReadLine(path));
  auto number = ParseInteger(line);
  if (!number.ok()) return std::move(number).error().While(path.string());
  return number;
}

Result<std::uint64_t> ReadUnsigned(const std::filesystem::path& path) {
  ZEUS_TRY(const std::string line, ReadLine(path));
  auto number = ParseUnsigned(line);
  if (!number.ok()) return std::move(number).error().While(path.string());
  return number;
}

Status WriteAttribute(const std::filesystem::path& path, std::string_view text) {
  const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
  if (file.get() < 0) return FileError(path, errno);
  const ssize_t written = ::write(file.get(), text.data(), text.size());
  if (written < 0) return FileError(path, errno);
  if (static_cast<std::size_t>(written) != text.size())
    return Error{ErrorCode::kUnavailable, path.string() + ": short write"};
  return Ok();
}

Status WriteAll(int descriptor, std::string_view text, const std::filesystem::path& path) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return FileError(path, errno);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return Ok();
}

Status ReplaceFile(const std::filesystem::path& path, std::string_view text, Readers readers,
                   Durability durability) {
  return ReplaceFile(
      path, [text](const WritePart& write_part) { return write_part(text); }, readers, durability);
}

Status ReplaceFile(const std::filesystem::path& given,
                   const std::function<Status(const WritePart& write_part)>& write, Readers readers,
                   Durability durability) {
  std::error_code failure;
  // A link stays one; a device or a pipe cannot be replaced without destroying it.
  const std::filesystem::path path = std::filesystem::is_symlink(given, failure)
                                         ? std::filesystem::weakly_canonical(given, failure)
                                         : given;
  if (std::filesystem::exists(path, failure) && !std::filesystem::is_regular_file(path, failure))
    return Error{ErrorCode::kInvalidArgument, given.string() + " is no regular file: name another"};
  // The new file is made in the same folder, since a rename does not cross file systems.
  std::string temporary = path.string() + ".XXXXXX";
  const FileDescriptor file(::mkostemp(temporary.data(), O_CLOEXEC));
  if (file.get() < 0) return FileError(path, errno);
  const auto fill = [&]() -> Status {
    const mode_t mode = readers == Readers::kEverybody ? 0644 : 0600;
    if (::fchmod(file.get(), mode) != 0) return FileError(path, errno);
    ZEUS_RETURN_IF_ERROR(
        write([&](std::string_view part) { return WriteAll(file.get(), part, path); }));
    if (durability == Durability::kSurvivesPowerLoss && ::fsync(file.get()) != 0)
      return FileError(path, errno);
    if (::rename(temporary.c_str(), path.c_str()) != 0) return FileError(path, errno);
    return Ok();
  };
  Status filled = fill();
  if (!filled.ok()) ::unlink(temporary.c_str());
  return filled;
}

Environment ProcessEnvironment() {
  return [](const std::string& variable) -> std::optional<std::string> {
    const char* const value = std::getenv(variable.c_str());
    return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
  };
}

std::optional<std::filesystem::path> UserFolder(const Environment& environment,
                                                std::string_view kind) {
  if (const auto config = environment("XDG_CONFIG_HOME"); config && !config->empty())
    return std::filesystem::path(*config) / "zeus" / kind;
  if (const auto home = environment("HOME"); home && !home->empty())
    return std::filesystem::path(*home) / ".config" / "zeus" / kind;
  return std::nullopt;
}

std::optional<std::filesystem::path> UserDataFolder(const Environment& environment,
                                                    std::string_view kind) {
  if (const auto data = environment("XDG_DATA_HOME"); data && !data->empty())
    return std::filesystem::path(*data) / "zeus" / kind;
  if (const auto home = environment("HOME"); home && !home->empty())
    return std::filesystem::path(*home) / ".local" / "share" / "zeus" / kind;
  return std::nullopt;
}

std::string FileNamePart(std::string_view text) {
  std::string part(text.empty() ? "unknown" : text);
  for (char& c : part) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.';
    if (!plain) c = '-';
  }
  return part;
}

}  // namespace zeus
