#include "zeus/http/limits.h"

#include <sys/resource.h>

#include <algorithm>

namespace zeus::http {
namespace {

// Files of databases (one connection for each worker), logs, certificates, listeners.
constexpr std::uint64_t kOtherFiles = 128;
constexpr std::uint64_t kFewestConnections = 16;
constexpr std::uint64_t kMostConnections = 10'000;
constexpr std::uint64_t kUsualFileLimit = 1024;

}  // namespace

std::size_t ConnectionsWithin(std::uint64_t open_files) {
  const std::uint64_t left = open_files > kOtherFiles ? open_files - kOtherFiles : 0;
  return std::clamp(left, kFewestConnections, kMostConnections);
}

std::size_t ConnectionsByOpenFiles() {
  ::rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return ConnectionsWithin(kUsualFileLimit);
  return ConnectionsWithin(limit.rlim_cur);
}

ConnectionPlaces::Place ConnectionPlaces::Assign(const std::string& address) {
  std::size_t& here = by_address_[address];
  if (ordinary_ < capacity_.connections && (address.empty() || here < capacity_.per_address)) {
    ++here;
    ++ordinary_;
    return Place::kOrdinary;
  }
  if (here == 0) by_address_.erase(address);
  return AssignRefused();
}

ConnectionPlaces::Place ConnectionPlaces::AssignRefused() {
  return reserved_ < capacity_.reserve ? AssignReserve() : Place::kNone;
}

ConnectionPlaces::Place ConnectionPlaces::AssignReserve() {
  ++reserved_;
  return Place::kReserve;
}

void ConnectionPlaces::Release(Place place, const std::string& address) {
  if (place == Place::kReserve) --reserved_;
  if (place != Place::kOrdinary) return;
  --ordinary_;
  const auto here = by_address_.find(address);
  if (--here->second == 0) by_address_.erase(here);
}

}  // namespace zeus::http
