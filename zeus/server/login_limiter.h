#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "zeus/base/clock.h"

namespace zeus::server {

// Slows down guessing: an address that sent kMostFailures wrong tokens gets no more answers about
// tokens than one in kRefill, except about those that it has used with success before, so that
// whoever shares the address with somebody who guesses is not shut out. Bounded memory.
// Thread-safe; the clock must outlive it.
class LoginLimiter {
 public:
  static constexpr int kMostFailures = 20;
  static constexpr Seconds kRefill{3};
  static constexpr std::size_t kMostAddresses = 4096;
  static constexpr std::size_t kMostNames = 64;  // Remembered per address.

  explicit LoginLimiter(const Clock& clock) : clock_(clock) {}

  enum class Verdict { kAccept, kReject, kTooMany };
  // `name` is that of the token, empty when it is wrong.
  Verdict Judge(const std::string& address, const std::string& name);

 private:
  struct Record {
    double failures = 0.0;  // Less those that time has forgiven.
    TimePoint at{};
    std::set<std::string> names{};  // That came with a right token.
  };

  void Forget();

  const Clock& clock_;
  std::mutex mutex_;
  std::map<std::string, Record> records_{};  // Guarded by mutex_.
};

}  // namespace zeus::server
