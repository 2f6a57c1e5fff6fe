#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "zeus/base/result.h"

// Small files that the kernel or a person wrote: sysfs attributes, profiles, configuration.
namespace zeus {

inline constexpr std::size_t kSmallFileLimit = 64 * 1024;

// The error for a failed system call on a path: ENOENT becomes kNotFound, EACCES and EPERM become
// kPermissionDenied, the rest kUnavailable. The message reads "<path>: <reason>".
Error FileError(const std::filesystem::path& path, int error_number);

// Reads the whole file. kInvalidArgument when it is larger than `limit` (a sysfs attribute never
// is).
Result<std::string> ReadSmallFile(const std::filesystem::path& path,
                                  std::size_t limit = kSmallFileLimit);

// Reads the first line without the newline and surrounding blanks. kInvalidArgument when the file
// is empty or holds bytes that are not text.
Result<std::string> ReadLine(const std::filesystem::path& path);

// Reads a decimal integer that stands alone on its line, as in sysfs.
Result<std::int64_t> ReadInteger(const std::filesystem::path& path);
Result<std::uint64_t> ReadUnsigned(const std::filesystem::path& path);

// Replaces the content of an existing file in one write(2), as sysfs attributes need it.
Status WriteAttribute(const std::filesystem::path& path, std::string_view text);

enum class Readers { kEverybody, kOwnerOnly };

// How much a replaced file outlasts for certain: the machine, or only this process. The latter
// costs no write to the disk.
enum class Durability { kSurvivesPowerLoss, kSurvivesProcess };

// Creates or replaces a file: readers see the old content or the new, never a part, also after a
// crash or on a full disk. A symbolic link stays one, and its target is replaced. The folder must
// exist; kInvalidArgument when the path is a pipe or a device, which cannot be replaced.
Status ReplaceFile(const std::filesystem::path& path, std::string_view text,
                   Readers readers = Readers::kEverybody,
                   Durability durability = Durability::kSurvivesPowerLoss);

// The same for content that is too large to hold: `write` hands it over in parts by calling its
// argument. The old content stays when `write` returns an error.
using WritePart = std::function<Status(std::string_view part)>;
Status ReplaceFile(const std::filesystem::path& path,
                   const std::function<Status(const WritePart& write_part)>& write,
                   Readers readers = Readers::kEverybody,
                   Durability durability = Durability::kSurvivesPowerLoss);

// Writes all of `text` to an open file, also when write(2) takes it in pieces or is interrupted.
// Errors name `path`.
Status WriteAll(int descriptor, std::string_view text, const std::filesystem::path& path);

// The places and names of the files that Zeus keeps for a user.

using Environment = std::function<std::optional<std::string>(const std::string& variable)>;

// The environment of this process.
Environment ProcessEnvironment();

// $XDG_CONFIG_HOME/zeus/<kind>, else $HOME/.config/zeus/<kind>; nullopt where the user has no home.
std::optional<std::filesystem::path> UserFolder(const Environment& environment,
                                                std::string_view kind);

// $XDG_DATA_HOME/zeus/<kind>, else $HOME/.local/share/zeus/<kind> for files
// that programs write for themselves; nullopt where the user has no home.
std::optional<std::filesystem::path> UserDataFolder(const Environment& environment,
                                                    std::string_view kind);

// Makes a safe part of a file name of a text that a user or a driver chose: every character but
// letters, digits, dots and hyphens becomes a hyphen, and an empty text becomes "unknown".
std::string FileNamePart(std::string_view text);

}  // namespace zeus
