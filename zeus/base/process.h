#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "zeus/base/file.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"

namespace zeus {

// A moment on which all processes of a machine agree until it is rebooted. Unlike the time of day
// it cannot be set, and time in which the machine slept counts.
struct BootTime {
  std::string boot{};  // Identifies this boot of this machine; empty when not known.
  Seconds since{};
};

BootTime CurrentBootTime();
using BootClock = std::function<BootTime()>;

// Starts counting forks. Code that must notice that it runs in a fork()ed child calls this once,
// early; further calls cost nothing.
void WatchForks();

// How often this process is a fork()ed copy of one that watched its forks: 0, then 1 in its child,
// 2 in the grandchild. One relaxed load; counted by pthread_atfork, so no system call.
unsigned ForkGeneration();

// The file that execvp() would run for the first word of a command: the word itself where it has a
// slash, else the first of that name in the folders of PATH. kNotFound when there is none,
// kNotSupported when it may not be executed.
Result<std::filesystem::path> FindExecutable(const std::string& command,
                                             const Environment& environment = ProcessEnvironment());

// The error that FindExecutable() would return, for a command whose exec() failed with this errno.
Error CannotExecute(const std::string& command, int reason);

// Identifies a process, also after its number was given to another one.
struct ProcessIdentity {
  std::int64_t pid = 0;
  std::uint64_t start_ticks = 0;  // Start time since boot (field 22 of /proc/<pid>/stat).
  std::string pid_namespace{};    // "pid:[4026531836]"; a pid is valid only inside.

  friend bool operator==(const ProcessIdentity&, const ProcessIdentity&) = default;
};

Result<ProcessIdentity> ThisProcess(const std::filesystem::path& procfs = "/proc");

// The process that has this number now, in the namespace of this process.
Result<ProcessIdentity> ProcessWithPid(std::int64_t pid,
                                       const std::filesystem::path& procfs = "/proc");

// Whether the process still runs, on this boot. A process of another namespace cannot be looked up
// and counts as running; a zombie does not.
bool IsRunning(const ProcessIdentity& process, const std::filesystem::path& procfs = "/proc");

// The name of this machine, "localhost" where it has none.
std::string HostName();

}  // namespace zeus
