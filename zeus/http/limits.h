#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "zeus/base/units.h"

// Bounds on what clients can take from a server and from each other, and the accounts that keep
// them.
namespace zeus::http {

struct Limits {
  std::size_t body = std::size_t{1} << 20;         // Bytes; a larger body is answered with 413.
  std::size_t large_body = std::size_t{16} << 20;  // Bytes, on routes that accept large bodies.
  std::size_t header = 16 * 1024;                  // Bytes; a larger header is answered with 431.
  std::size_t fields = 100;  // Fields of a header; more are answered with 431.
  // Bytes of all bodies that arrive or are being handled; beyond it requests are answered with 503.
  // Handling a body takes several times its size in memory.
  std::size_t bodies = std::size_t{32} << 20;
  std::size_t answers = std::size_t{64} << 20;  // Bytes of all answers that are being sent.
  // Further ones are answered with 503 and closed. `zeus serve` sets it from ulimit -n.
  std::size_t connections = 1024;
  std::size_t per_address = 512;  // Connections from one address, likewise.
  // The most threads of each kind; a server starts with one of each.
  int workers = 64;                    // For Work::kWrite.
  int readers = 8;                     // For Work::kRead: few threads wake less often.
  int slow_workers = 16;               // For Work::kSlow.
  Seconds header_time = Seconds(10);   // From a header's first byte to its last; then 408.
  Seconds body_time = Seconds(30);     // Likewise for a body.
  Seconds idle_time = Seconds(75);     // Between two requests; then the connection is closed.
  Seconds request_time = Seconds(60);  // For the handler; then 503.
  Seconds write_time = Seconds(30);    // For the client to read an answer.
  // The same for streams once the server ends: a client that does not read delays its end so long.
  Seconds last_write{2};
};

// The number of connections that a server should allow when the process may open `open_files`
// files: all but those that databases, logs, certificates and listeners need. At least 16, at most
// 10000.
std::size_t ConnectionsWithin(std::uint64_t open_files);

// ConnectionsWithin() for the limit of this process (ulimit -n).
std::size_t ConnectionsByOpenFiles();

// Bytes that many users may hold together. Thread-safe; must outlive its shares.
class MemoryBudget {
 public:
  explicit MemoryBudget(std::size_t limit) : limit_(limit) {}
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;

  // The bytes that one user holds, given back by the destructor. One owner.
  class Share {
   public:
    explicit Share(MemoryBudget& budget) : budget_(budget) {}
    ~Share() { budget_.used_ -= bytes_; }
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

    // Makes the share at least `bytes` large. Returns false, and changes nothing, when the budget
    // has less left. A sole user gets any size, so that no request is too large for ever.
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

// Counts connections, so that no address holds all of them, and so that a health check gets through
// even when all are taken: a reserve beyond the limit is for such requests alone. One thread.
class ConnectionPlaces {
 public:
  struct Capacity {
    std::size_t connections = 0;
    std::size_t per_address = 0;
    std::size_t reserve = 0;
  };
  enum class Place {
    kOrdinary,
    kReserve,
    kNone,  // All are taken until a connection of the reserve ends.
  };

  explicit ConnectionPlaces(const Capacity& capacity) : capacity_(capacity) {}

  // Assigns a place to a new connection. Connections with an empty address (Unix
  // sockets whose handler gives no key) are not counted by address.
  Place Assign(const std::string& address);
  // Assigns a place for a connection that the handler refuses: one of the reserve, or none.
  Place AssignRefused();
  // Assigns a place of the reserve beyond its limit: another one is about to become free.
  Place AssignReserve();
  void Release(Place place, const std::string& address);

 private:
  const Capacity capacity_;
  std::size_t ordinary_ = 0;
  std::size_t reserved_ = 0;
  std::map<std::string, std::size_t> by_address_{};  // Ordinary connections; never 0.
};

}  // namespace zeus::http
