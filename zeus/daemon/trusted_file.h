#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "zeus/base/file.h"
#include "zeus/base/result.h"

namespace zeus::daemon {

// The users besides the owner that may read a trusted file.
enum class Secrecy { kPublic, kOwnerOnly };

inline constexpr std::size_t kTrustedFileLimit = 1024 * 1024;

// Reads a file that decides what others may do: the configuration, keys, revoked tokens. Nobody but
// root and this user can have written it or put it there: it is a regular file and no symbolic
// link, belongs to one of them and is not writable by group or others, and so are the folders above
// it (those further up may be sticky, as /tmp is). Everything is checked on open descriptors, so
// nothing can be exchanged between the check and the reading.
//
// kPermissionDenied says what to change, kNotFound that there is no file, kInvalidArgument that it
// is larger than the limit.
Result<std::string> ReadTrustedFile(const std::filesystem::path& path,
                                    Secrecy secrecy = Secrecy::kPublic,
                                    std::size_t limit = kTrustedFileLimit);

// Reads a file that the daemon keeps for itself, as WriteStateFile() has written it. The folders
// above it may be anything: users who can write there can take the file away, and one of theirs in
// its place is refused, as is a link. Errors as above.
Result<std::string> ReadStateFile(const std::filesystem::path& path, std::size_t limit);

// Creates or replaces the file, readable by its owner only. A symbolic link in its place is
// replaced and not followed, so that nobody makes the daemon write elsewhere.
Status WriteStateFile(const std::filesystem::path& path, std::string_view text,
                      Durability durability);

}  // namespace zeus::daemon
