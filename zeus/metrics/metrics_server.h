#pragma once

#include <functional>
#include <memory>
#include <string>

#include "zeus/base/result.h"
#include "zeus/base/ticker.h"
#include "zeus/http/url.h"

namespace zeus {

// Answers GET /metrics, /-/healthy and a page at / over HTTP until it is destroyed, on threads of
// its own.
class MetricsServer {
 public:
  // `metrics` returns the text of an answer; several threads call it. Returns kUnavailable when the
  // address is taken or does not belong to this machine, and kInvalidArgument for a Unix socket.
  static Result<std::unique_ptr<MetricsServer>> Start(const http::ListenAddress& address,
                                                      std::function<std::string()> metrics);
  ~MetricsServer();

  std::string url() const;  // "http://127.0.0.1:9400"

 private:
  class Listener;
  MetricsServer(std::unique_ptr<Listener> listener, http::ListenAddress address);

  std::unique_ptr<Listener> listener_;
  const http::ListenAddress address_;
  Ticker thread_;
};

}  // namespace zeus
