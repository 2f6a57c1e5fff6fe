#pragma once

#include <signal.h>

namespace zeus::cli {

// While one exists, SIGINT and SIGTERM do not end the process but are remembered, so that loads can
// be taken away first; and a load that went away is an error of a write, not a SIGPIPE. At most one
// at a time.
class Interruption {
 public:
  Interruption();
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  // The signal that came, 0 if none did.
  int signal() const;

 private:
  struct sigaction interrupt_ {};
  struct sigaction terminate_ {};
  struct sigaction pipe_ {};
};

}  // namespace zeus::cli
