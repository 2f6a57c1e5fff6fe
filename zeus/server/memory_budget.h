#pragma once

#include <atomic>
#include <cstddef>
#include <utility>

namespace zeus::server {

// Bytes that many users may hold together. Thread-safe; outlives the shares that it gave.
class MemoryBudget {
 public:
  explicit MemoryBudget(std::size_t limit) : limit_(limit) {}
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;

  // The bytes that one user holds; given back with its destruction. One user at a time.
  class Share {
   public:
    explicit Share(MemoryBudget& budget) : budget_(budget) {}
    ~Share() { budget_.used_ -= bytes_; }
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

    // Makes it at least `bytes` large. False when the budget has not that much left: the share
    // stays as it is. The only user gets whatever it asks for, so that nothing is too large for
    // ever.
    bool GrowTo(std::size_t bytes) {
      if (bytes <= bytes_) return true;
      const std::size_t more = bytes - bytes_;
      const std::size_t before = budget_.used_.fetch_add(more);
      if (before > bytes_ && before + more > budget_.limit_) {
        budget_.used_ -= more;
        return false;
      }
      bytes_ = bytes;
      return true;
    }

   private:
    MemoryBudget& budget_;
    std::size_t bytes_ = 0;
  };

  std::size_t used() const { return used_; }
  std::size_t limit() const { return limit_; }

 private:
  const std::size_t limit_;
  std::atomic<std::size_t> used_ = 0;
};

}  // namespace zeus::server
