#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "zeus/base/result.h"
#include "zeus/base/ticker.h"

namespace zeus {

struct ListenAddress {
  std::string host;
  std::uint16_t port = 0;  // 0: one that is free.
};

// "host:port", "[::1]:port", or a port alone (with or without the colon), which means this machine
// only. kInvalidArgument otherwise.
Result<ListenAddress> ParseListenAddress(std::string_view text);

// Answers GET /metrics, /-/healthy and a page at / over HTTP until it is destroyed, on threads of
// its own.
class MetricsServer {
 public:
  // `metrics` gives the text of an answer; it is called by several threads. kUnavailable when the
  // address is taken or is none of this machine.
  static Result<std::unique_ptr<MetricsServer>> Start(const ListenAddress& address,
                                                      std::function<std::string()> metrics);
  ~MetricsServer();

  std::string url() const;  // "http://127.0.0.1:9400"

 private:
  class Listener;
  MetricsServer(std::unique_ptr<Listener> listener, ListenAddress address);

  std::unique_ptr<Listener> listener_;
  const ListenAddress address_;
  Ticker thread_;
};

}  // namespace zeus
