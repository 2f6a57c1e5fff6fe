#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "zeus/base/result.h"

// Small files that the kernel or a person wrote: sysfs attributes, profiles, configuration.
namespace zeus {

inline constexpr std::size_t kSmallFileLimit = 64 * 1024;

// The error for a failed system call on a path: ENOENT becomes kNotFound, EACCES and EPERM become
// kPermissionDenied, the rest kUnavailable. The message reads "<path>: <reason>".
Error FileError(const std::filesystem::path& path, int error_number);

// The whole file. kInvalidArgument when it is larger than `limit` (a sysfs attribute never is).
Result<std::string> ReadSmallFile(const std::filesystem::path& path,
                                  std::size_t limit = kSmallFileLimit);

// One line of text without the newline and surrounding blanks. kInvalidArgument when the file is
// empty or holds bytes that are not text.
Result<std::string> ReadLine(const std::filesystem::path& path);

// A decimal integer, alone on its line, as sysfs writes them.
Result<std::int64_t> ReadInteger(const std::filesystem::path& path);
Result<std::uint64_t> ReadUnsigned(const std::filesystem::path& path);

// Replaces the content of an existing file in one write(2), as sysfs attributes need it.
Status WriteAttribute(const std::filesystem::path& path, std::string_view text);

// Creates or replaces a file: readers see the old content or the new, never a part, also after a
// crash. The folder must exist.
enum class Readers { kEverybody, kOwnerOnly };
Status ReplaceFile(const std::filesystem::path& path, std::string_view text,
                   Readers readers = Readers::kEverybody);

}  // namespace zeus
