#include "zeus/http/departure_watch.h"

#include <sys/epoll.h>

#include <array>
#include <cerrno>
#include <system_error>

namespace zeus::http {
namespace {

Error WatchError() {
  return {ErrorCode::kUnavailable,
          "cannot watch connections: " + std::generic_category().message(errno)};
}

}  // namespace

Result<DepartureWatch> DepartureWatch::Start() {
  auto epoll = std::make_unique<FileDescriptor>(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll->valid()) return WatchError();
  return DepartureWatch(std::move(epoll));
}

Status DepartureWatch::Add(int socket, std::uint64_t key) {
  ::epoll_event event{};
  event.events = EPOLLRDHUP | EPOLLHUP | EPOLLERR | EPOLLONESHOT;
  event.data.u64 = key;
  if (::epoll_ctl(epoll_->get(), EPOLL_CTL_ADD, socket, &event) != 0) return WatchError();
  return Ok();
}

std::vector<std::uint64_t> DepartureWatch::Take() {
  std::vector<std::uint64_t> keys;
  std::array<::epoll_event, 64> events;
  int count = 0;
  do {
    count = ::epoll_wait(epoll_->get(), events.data(), static_cast<int>(events.size()), 0);
    for (int i = 0; i < count; ++i) keys.push_back(events.at(static_cast<std::size_t>(i)).data.u64);
  } while (count == static_cast<int>(events.size()));
  return keys;
}

}  // namespace zeus::http
