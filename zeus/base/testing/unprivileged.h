#pragma once

#include <unistd.h>

namespace zeus::testing {

// Gives up root's power over files for the life of the object, so that permission errors can be
// tested by root too. Not for tests with several threads: the user belongs to the thread.
class Unprivileged {
 public:
  Unprivileged() : previous_(::geteuid()) {
    constexpr uid_t kNobody = 65534;
    if (previous_ == 0) effective_ = ::seteuid(kNobody) == 0;
  }
  ~Unprivileged() {
    if (previous_ == 0 && effective_ && ::seteuid(previous_) != 0) ::_exit(1);
  }
  Unprivileged(const Unprivileged&) = delete;
  Unprivileged& operator=(const Unprivileged&) = delete;

  // False where even root may not become somebody else (some containers): skip the test then.
  bool effective() const { return effective_; }

 private:
  const uid_t previous_;
  bool effective_ = true;
};

}  // namespace zeus::testing
