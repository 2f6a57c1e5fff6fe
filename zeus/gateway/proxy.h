#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/gateway/http_head.h"
#include "zeus/http/message.h"
#include "zeus/http/tls.h"
#include "zeus/http/url.h"

// A reverse proxy for HTTP/1.x: streams in both directions, with backpressure and without a thread
// per connection. It knows nothing of language models; its handler decides where requests go and
// may follow and change the bodies of responses.
namespace zeus::gateway {

struct ProxyLimits {
  HeadLimits head{.bytes = 64 * 1024, .fields = 200};
  std::size_t body = std::size_t{64} << 20;     // Bytes of a request; beyond it 413.
  std::size_t bodies = std::size_t{512} << 20;  // Bytes of all bodies that are held; then 503.
  std::size_t connections = 16384;              // Clients beyond it are closed at once.
  std::size_t idle_upstream = 256;              // Connections that are kept for each upstream.
  Seconds header_time{10};                      // From a head's first byte to its last; then 408.
  Seconds body_time{60};                        // Without a byte of a request's body; then 408.
  Seconds keep_alive_time{75};                  // Between two requests of a client.
  Seconds connect_time{5};                      // To reach an upstream; then 504.
  Seconds first_byte_time{600};                 // From the request to the response; then 504.
  Seconds idle_time{300};                       // Without a byte of the response, or without a
                                                // byte that the client reads; then closed.
  // llama-server closes connections after 5 s, uvicorn as well.
  Seconds upstream_keep_alive_time{4};
};

struct ProxyOptions {
  std::string listen = "127.0.0.1:0";  // See http::ParseListenAddress().
  std::optional<http::TlsFiles> tls{};
  std::vector<http::Url> upstreams{};
  std::string authorities{};  // PEM file of the certificates to trust; empty: the system's.
  ProxyLimits limits{};
};

// Figures for metrics and tests. Written by the proxy's thread.
struct ProxyCounts {
  std::atomic<std::size_t> clients = 0;            // Open connections.
  std::atomic<std::size_t> exchanges = 0;          // Requests that an upstream works on.
  std::atomic<std::uint64_t> refused = 0;          // Connections beyond the limit.
  std::atomic<std::uint64_t> resent = 0;           // Requests sent again after a stale connection.
  std::atomic<std::uint64_t> upstream_opened = 0;  // Connections made to upstreams.
};

enum class ExchangeEnd {
  kCompleted,
  kCancelled,  // The client left.
  kFailed,     // The upstream could not be reached, ended too early, or took too long.
};

// Follows one request that an upstream works on, and may change its response. All calls come from
// the proxy's thread. Nothing it does may fail the request, so it has no way to return an error.
class Exchange {
 public:
  virtual ~Exchange() = default;

  // The identifier that the client gets as x-zeus-request, also with an error of the gateway.
  virtual std::string_view request_id() const = 0;
  // The head of the response arrived. Fields may be added or changed.
  virtual void OnHead(ResponseHead& head) = 0;
  // Appends to `out` the bytes that the client gets for those that came.
  virtual void OnBody(std::string_view in, std::string& out) = 0;
  // The body is complete: appends what was held back. When the head has not been sent yet, fields
  // may be added to it.
  virtual void OnBodyEnd(std::string& out, HeaderFields* unsent_head) = 0;
  // The body ended too early: appends what was held back.
  virtual void OnBodyBroken(std::string& out) = 0;
  // Adds fields after the body of a chunked response whose client accepts them.
  virtual void AddTrailers(HeaderFields& trailers) = 0;
  // The names of those fields, for the head; empty when there will be none.
  virtual std::string_view trailer_names() const = 0;

  // Whether the length of the body may change, and whether the head should wait for the body's end.
  virtual bool changes_length() const = 0;
  virtual bool holds_body() const = 0;

  // Called once, as the last function. `status` is that of the response that the client got, 0 when
  // there was none.
  virtual void OnEnd(ExchangeEnd end, int status, const std::string& reason) = 0;
};

// A request whose head, and as far as it was asked for, body have arrived.
struct ProxyRequest {
  RequestHead head{};
  std::string body{};     // Empty when it is streamed.
  bool streamed = false;  // The body follows.
  std::string remote{};   // Address of the client, for the log.
};

// The request goes to an upstream.
struct Forward {
  std::size_t upstream = 0;
  std::unique_ptr<Exchange> exchange{};  // nullptr: the response passes untouched.
};
// The same request goes to all upstreams and the handler combines the answers.
struct ForwardToAll {};
// The client gets Handler::LiveText() once a second until it leaves.
struct Live {};
using Decision = std::variant<http::Answer, Forward, ForwardToAll, Live>;

// An upstream's whole answer to a small request.
struct Fetched {
  int status = 0;
  std::string body{};
};

// Sends small requests to upstreams, on the proxy's thread.
class Fetcher {
 public:
  virtual ~Fetcher() = default;
  // Sends GET and calls `done` later, on the proxy's thread.
  virtual void Fetch(std::size_t upstream, std::string_view target, const HeaderFields& fields,
                     std::function<void(Result<Fetched>)> done) = 0;
};

// The program above the proxy. All calls come from the proxy's thread and must not block.
class ProxyHandler {
 public:
  virtual ~ProxyHandler() = default;
  // Whether Decide() needs the body. Otherwise it is passed on as it comes.
  virtual bool WantsBody(const RequestHead& head) = 0;
  // May change the request: its fields and its body are passed on as they are afterwards, without
  // hop-by-hop fields.
  virtual Decision Decide(ProxyRequest& request) = 0;
  // The answer to ForwardToAll, from what each upstream answered.
  virtual http::Answer Combine(const ProxyRequest& request,
                               const std::vector<Result<Fetched>>& answers) = 0;
  virtual std::string LiveText() = 0;
  // Called every 50 ms. The fetcher lives as long as the proxy.
  virtual void Tick(Fetcher& fetcher) = 0;
};

// Serves until it is destroyed. One thread moves all bytes. The handler, the counts and the clock
// must outlive the proxy.
class Proxy {
 public:
  // The proxy listens when this returns. Returns kInvalidArgument for malformed addresses and
  // unusable certificates, and kUnavailable when the address is taken.
  static Result<std::unique_ptr<Proxy>> Start(const ProxyOptions& options, ProxyHandler& handler,
                                              ProxyCounts& counts, const Clock& clock);
  ~Proxy();  // Ends at once.
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  const std::string& url() const;  // "http://127.0.0.1:8080"

  // Stops listening and closes idle connections; requests that have begun may finish.
  void BeginShutdown();
  // Returns true as soon as the last client is gone, and false after `timeout`.
  bool WaitForShutdown(Seconds timeout);

 private:
  class State;
  explicit Proxy(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// An answer of the gateway itself in the form that OpenAI's clients show to people:
// {"error": {"message": ..., "type": ..., "code": ...}}.
http::Answer ErrorAnswer(int status, std::string_view type, const std::string& message);

}  // namespace zeus::gateway
