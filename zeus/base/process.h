#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "zeus/base/result.h"

namespace zeus {

// Identifies a process, also after its number was given to another one.
struct ProcessIdentity {
  std::int64_t pid = 0;
  std::uint64_t start_ticks = 0;  // Start time since boot (field 22 of /proc/<pid>/stat).
  std::string pid_namespace{};    // "pid:[4026531836]"; a pid is valid only inside.

  friend bool operator==(const ProcessIdentity&, const ProcessIdentity&) = default;
};

Result<ProcessIdentity> ThisProcess(const std::filesystem::path& procfs = "/proc");

// Whether the process still runs, on this boot. A process of another namespace cannot be looked up
// and counts as running; a zombie does not.
bool IsRunning(const ProcessIdentity& process, const std::filesystem::path& procfs = "/proc");

// The name of this machine, "localhost" where it has none.
std::string HostName();

}  // namespace zeus
