#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "zeus/base/result.h"

namespace zeus {

// Which process, also after its number was given to another one.
struct ProcessIdentity {
  std::int64_t pid = 0;
  std::uint64_t start_ticks = 0;  // Since boot (field 22 of /proc/<pid>/stat).
  std::string pid_namespace{};    // "pid:[4026531836]": numbers mean nothing outside.

  friend bool operator==(const ProcessIdentity&, const ProcessIdentity&) = default;
};

Result<ProcessIdentity> ThisProcess(const std::filesystem::path& procfs = "/proc");

// Whether it still runs, on this boot. A process of another namespace cannot be looked up and
// counts as running; one that has ended and was not yet waited for does not.
bool IsRunning(const ProcessIdentity& process, const std::filesystem::path& procfs = "/proc");

}  // namespace zeus
