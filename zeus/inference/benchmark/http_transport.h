#pragma once

#include <memory>
#include <string>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/http/url.h"
#include "zeus/inference/benchmark/load_generator.h"

namespace zeus::inference {

struct HttpTransportOptions {
  http::Url url{};            // Its path stands before the target of every request.
  std::string authorities{};  // PEM file of the certificates to trust; empty: the system's.
  Seconds connect_timeout{5};
  // A connection that was idle for longer is not used again: llama-server and uvicorn close theirs
  // after 5 s.
  Seconds longest_idle{2};
};

// HTTP/1.1 over TCP, TLS or a Unix socket, for as many requests at once as a load needs, on the
// thread that calls WaitUntil(). Connections are kept between requests; a request that got no byte
// on a kept connection is sent once more on a fresh one.
class HttpTransport final : public Transport {
 public:
  // Does not connect yet. kInvalidArgument when the file of authorities holds no certificate. The
  // clock must outlive the transport.
  static Result<std::unique_ptr<HttpTransport>> Create(const Clock& clock,
                                                       const HttpTransportOptions& options);
  ~HttpTransport() override;
  HttpTransport(const HttpTransport&) = delete;
  HttpTransport& operator=(const HttpTransport&) = delete;

  void Start(CallId call, const Outgoing& request, Listener& listener) override;
  void Abort(CallId call) override;
  void WaitUntil(TimePoint deadline) override;

 private:
  class State;
  explicit HttpTransport(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace zeus::inference
