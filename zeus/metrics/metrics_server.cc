#include "zeus/metrics/metrics_server.h"

#include <fmt/format.h>
#include <httplib.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <thread>
#include <utility>

#include "zeus/base/text.h"
#include "zeus/metrics/metric.h"

namespace zeus {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kThreads = 4;
constexpr std::size_t kLargestRequest = 4096;  // Bytes of a body, which no request of ours has.
constexpr auto kTimeout = 5s;
constexpr TimePoint kNever{Seconds(1e9)};  // After boot: serving is over when it returned once.

constexpr const char* kPage =
    "<!DOCTYPE html><title>zeus</title><h1>zeus</h1>"
    "<p><a href=\"/metrics\">metrics</a> of this machine for Prometheus</p>\n";

}  // namespace

class MetricsServer::Listener {
 public:
  explicit Listener(std::function<std::string()> metrics) : metrics_(std::move(metrics)) {
    server_.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
    server_.set_payload_max_length(kLargestRequest);
    server_.set_read_timeout(kTimeout);
    server_.set_write_timeout(kTimeout);
    // The library would share the port with another process that listens on it already, and each
    // would get some of the requests.
    server_.set_socket_options([](socket_t socket) {
      const int yes = 1;
      ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    });
    server_.Get("/metrics", [this](const httplib::Request&, httplib::Response& response) {
      response.set_content(metrics_(), MetricSet::kContentType);
    });
    server_.Get("/-/healthy", [](const httplib::Request&, httplib::Response& response) {
      response.set_content("zeus is healthy\n", "text/plain");
    });
    server_.Get("/", [](const httplib::Request&, httplib::Response& response) {
      response.set_content(kPage, "text/html");
    });
  }

  // The port that is listened on.
  Result<std::uint16_t> Bind(const http::ListenAddress& address) {
    errno = 0;
    const int port = address.port == 0 ? server_.bind_to_any_port(address.host)
                     : server_.bind_to_port(address.host, address.port) ? address.port
                                                                        : -1;
    if (port > 0) return static_cast<std::uint16_t>(port);
    const int cause = errno;
    return Error{ErrorCode::kUnavailable,
                 fmt::format("cannot listen on {}:{}: {}", Printable(address.host), address.port,
                             cause != 0 ? std::generic_category().message(cause)
                                        : "no address of this machine")};
  }

  void Serve() {
    server_.listen_after_bind();
    over_ = true;
  }

  void Stop() {
    // The library forgets a stop that comes before it accepts, which is a moment after the start.
    while (!server_.is_running() && !over_) std::this_thread::yield();
    server_.stop();
  }

 private:
  const std::function<std::string()> metrics_;
  httplib::Server server_;
  std::atomic<bool> over_ = false;
};

MetricsServer::MetricsServer(std::unique_ptr<Listener> listener, http::ListenAddress address)
    : listener_(std::move(listener)), address_(std::move(address)), thread_("zeus-http", [this] {
        listener_->Serve();
        return kNever;
      }) {}

MetricsServer::~MetricsServer() { listener_->Stop(); }

Result<std::unique_ptr<MetricsServer>> MetricsServer::Start(const http::ListenAddress& address,
                                                            std::function<std::string()> metrics) {
  if (address.is_unix())
    return InvalidArgument("metrics are served over TCP only: use host:port, [::1]:port or a port");
  auto listener = std::make_unique<Listener>(std::move(metrics));
  ZEUS_TRY(const std::uint16_t port, listener->Bind(address));
  return std::unique_ptr<MetricsServer>(
      new MetricsServer(std::move(listener), {.host = address.host, .port = port}));
}

std::string MetricsServer::url() const {
  return "http://" + http::Authority(address_.host, address_.port);
}

}  // namespace zeus
