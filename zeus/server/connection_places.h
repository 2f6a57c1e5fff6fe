#pragma once

#include <cstddef>
#include <map>
#include <string>

namespace zeus::server {

// Counts connections, so that no address has all of them and somebody who asks whether the server
// lives is heard even when all are taken. Used by one thread.
class ConnectionPlaces {
 public:
  struct Limits {
    std::size_t connections = 0;
    std::size_t per_address = 0;
    std::size_t reserve = 0;  // More connections, for questions about the server's health alone.
  };
  enum class Place {
    kOrdinary,
    kReserve,
    kNone,  // Until a connection of the reserve ends.
  };

  explicit ConnectionPlaces(const Limits& limits) : limits_(limits) {}

  // Takes a place. An empty address is that of a Unix socket: all its connections are one's own.
  Place Take(const std::string& address) {
    std::size_t& here = by_address_[address];
    if (ordinary_ < limits_.connections && (address.empty() || here < limits_.per_address)) {
      ++here;
      ++ordinary_;
      return Place::kOrdinary;
    }
    if (here == 0) by_address_.erase(address);
    if (reserved_ >= limits_.reserve) return Place::kNone;
    return TakeReserve();
  }
  // Whatever the limit says: another connection of the reserve is about to end.
  Place TakeReserve() {
    ++reserved_;
    return Place::kReserve;
  }

  void GiveBack(Place place, const std::string& address) {
    if (place == Place::kReserve) --reserved_;
    if (place != Place::kOrdinary) return;
    --ordinary_;
    const auto here = by_address_.find(address);
    if (--here->second == 0) by_address_.erase(here);
  }

 private:
  const Limits limits_;
  std::size_t ordinary_ = 0;
  std::size_t reserved_ = 0;
  std::map<std::string, std::size_t> by_address_{};  // Ordinary ones; no address has 0.
};

}  // namespace zeus::server
