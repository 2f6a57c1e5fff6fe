#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "zeus/base/result.h"

// Helper programs that Zeus starts for itself: a converter of pictures, the load of a calibration.
// The commands that users measure have more to ask for (a terminal, a guardian, signals passed on)
// and are started by zeus/process/child.h.
namespace zeus {

struct SpawnOptions {
  std::vector<std::string> command{};  // The program, searched in PATH, and its arguments.
  // "NAME=value" for each variable; this process's own environment where absent.
  std::optional<std::vector<std::string>> environment{};
  std::optional<int> input{};      // Becomes standard input.
  std::optional<int> output{};     // Becomes standard output.
  std::optional<int> error{};      // Becomes standard error.
  bool own_process_group = false;  // So that kill(-pid) reaches what the program starts, too.
};

// Starts the program and returns its process id; the caller waits for it. SIGINT, SIGTERM and
// SIGPIPE act there as they do by default, whatever this process does with them. kNotFound when
// there is no such program.
Result<pid_t> Spawn(const SpawnOptions& options);

// Waits for a process to end and returns the status that waitpid() gives.
int WaitForEnd(pid_t process);

}  // namespace zeus
