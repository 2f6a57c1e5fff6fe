#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

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

}  // namespace zeus::daemon
