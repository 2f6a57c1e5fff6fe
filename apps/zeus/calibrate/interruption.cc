#include "apps/zeus/calibrate/interruption.h"

#include <atomic>

namespace zeus::cli {
namespace {

std::atomic<int> signal_received = 0;
static_assert(std::atomic<int>::is_always_lock_free);

}  // namespace

Interruption::Interruption() {
  signal_received = 0;
  struct sigaction remember {};
  remember.sa_handler = [](int number) { signal_received = number; };
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGINT, &remember, &interrupt_);
  ::sigaction(SIGTERM, &remember, &terminate_);
  ::sigaction(SIGPIPE, &ignore, &pipe_);
}

Interruption::~Interruption() {
  ::sigaction(SIGINT, &interrupt_, nullptr);
  ::sigaction(SIGTERM, &terminate_, nullptr);
  ::sigaction(SIGPIPE, &pipe_, nullptr);
}

int Interruption::signal() const { return signal_received; }

}  // namespace zeus::cli
