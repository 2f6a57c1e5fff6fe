#include "zeus/gateway/proxy.h"

#include <condition_variable>
#include <mutex>
#include <unordered_map>

#include "zeus/base/json.h"
#include "zeus/base/ticker.h"
#include "zeus/gateway/proxy_client.h"
#include "zeus/gateway/proxy_upstream.h"
#include "zeus/http/limits.h"

namespace zeus::gateway {
namespace {

constexpr TimePoint kNever{Seconds(1e9)};  // Never comes: io_context::run() is called once.
constexpr auto kTick = std::chrono::milliseconds(50);
constexpr int kTicksPerCheck = 5;  // Deadlines are checked this often.
constexpr int kTicksPerLive = 20;  // Live figures are sent this often.
constexpr std::size_t kReadSize = 64 * 1024;

Error CannotListen(const std::string& listen, const error_code& failure) {
  return {failure == asio::error::access_denied ? ErrorCode::kPermissionDenied
                                                : ErrorCode::kUnavailable,
          fmt::format("cannot listen on {}: {}", Printable(listen), failure.message())};
}

std::string RemoteAddress(const tcp::socket& socket) {
  error_code failure;
  const auto endpoint = socket.remote_endpoint(failure);
  return failure ? "unknown" : endpoint.address().to_string();
}
std::string RemoteAddress(const Local::socket&) { return "unix"; }

}  // namespace

http::Answer ErrorAnswer(int status, std::string_view type, const std::string& message) {
  return http::JsonAnswer(
      status, Json{{"error", {{"message", message}, {"type", type}, {"code", status}}}});
}

class Proxy::State final : public Fetcher {
 public:
  State(const ProxyOptions& options, ProxyHandler& handler, ProxyCounts& counts, const Clock& clock)
      : limits_(options.limits),
        bodies_(options.limits.bodies),
        buffer_(kReadSize),
        context_{.io = io_,
                 .handler = handler,
                 .counts = counts,
                 .clock = clock,
                 .limits = limits_,
                 .bodies = bodies_,
                 .upstreams = upstreams_,
                 .buffer = buffer_} {}

  ~State() override {
    io_.stop();
    thread_.reset();
    if (!socket_path_.empty()) ::unlink(socket_path_.c_str());
    for (const auto& call : AllCalls()) call->Fail(502, "the gateway ended");
    for (const auto& client : AllClients()) client->End();
  }

  Status Listen(const ProxyOptions& options) {
    for (const http::Url& url : options.upstreams) {
      upstreams_.push_back(std::make_unique<Upstream>(url, limits_));
      ZEUS_RETURN_IF_ERROR(upstreams_.back()->Open(options.authorities));
    }
    if (options.tls) {
      tls_ = Context(SSL_CTX_new(TLS_server_method()), &SSL_CTX_free);
      if (!tls_) return Error{ErrorCode::kInternal, "OpenSSL made no context"};
      ZEUS_RETURN_IF_ERROR(http::LoadTls(*options.tls, *tls_));
    }
    ZEUS_TRY(const http::ListenAddress address, http::ParseListenAddress(options.listen));
    ZEUS_RETURN_IF_ERROR(address.is_unix() ? ListenOnUnixSocket(address.socket_path)
                                           : ListenOnTcp(options.listen, address));
    AwaitTick();
    thread_ = std::make_unique<Ticker>("zeus-gateway", [this] {
      io_.run();
      return kNever;
    });
    return Ok();
  }

  const std::string& url() const { return url_; }

  void Fetch(std::size_t upstream, std::string_view target, const HeaderFields& fields,
             std::function<void(Result<Fetched>)> done) override {
    std::make_shared<FetchCall>(std::move(done))->Start(context_, upstream, target, fields);
  }

  void BeginShutdown() {
    asio::post(io_, [this] {
      context_.draining = true;
      error_code ignored;
      if (tcp_) tcp_->close(ignored);
      if (local_) local_->close(ignored);
      for (const auto& client : AllClients()) client->Drain();
      for (const auto& upstream : upstreams_) upstream->CloseIdle();
      CheckDrained();
    });
  }

  bool WaitForShutdown(Seconds timeout) {
    std::unique_lock lock(mutex_);
    const auto until = std::chrono::time_point_cast<std::chrono::nanoseconds>(
        context_.clock.Now() + std::chrono::duration_cast<std::chrono::nanoseconds>(timeout));
    return gone_.wait_until(lock, until, [this] { return drained_; });
  }

 private:
  using Context = std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)>;

  Status ListenOnTcp(const std::string& listen, const http::ListenAddress& address) {
    tcp::resolver resolver(io_);
    error_code failure;
    const auto found = resolver.resolve(address.host, std::to_string(address.port),
                                        tcp::resolver::passive, failure);
    if (failure || found.empty())
      return InvalidArgument(fmt::format("{} is no address of this machine", Quote(address.host)));
    const tcp::endpoint endpoint = found.begin()->endpoint();
    tcp_.emplace(io_);
    tcp_->open(endpoint.protocol(), failure);
    if (!failure) tcp_->set_option(tcp::acceptor::reuse_address(true), failure);
    if (!failure) tcp_->bind(endpoint, failure);
    if (!failure) tcp_->listen(asio::socket_base::max_listen_connections, failure);
    if (failure) return CannotListen(listen, failure);
    url_ = fmt::format("{}://{}", tls_ ? "https" : "http",
                       http::Authority(address.host, tcp_->local_endpoint().port()));
    Accept(*tcp_);
    return Ok();
  }

  Status ListenOnUnixSocket(const std::string& path) {
    error_code failure;
    Local::socket probe(io_);
    probe.connect(Local::endpoint(path), failure);
    if (!failure)
      return Error{ErrorCode::kUnavailable,
                   fmt::format("cannot listen on {}: another server does", Printable(path))};
    if (failure == asio::error::connection_refused) ::unlink(path.c_str());  // Left by a dead one.
    failure.clear();
    local_.emplace(io_);
    local_->open(Local(), failure);
    if (!failure) local_->bind(Local::endpoint(path), failure);
    if (!failure) local_->listen(asio::socket_base::max_listen_connections, failure);
    if (failure) return CannotListen(path, failure);
    socket_path_ = path;
    url_ = "unix:" + path;
    Accept(*local_);
    return Ok();
  }

  template <class Acceptor>
  void Accept(Acceptor& acceptor) {
    acceptor.async_accept([this, &acceptor](const error_code& failure, auto socket) {
      if (!acceptor.is_open()) return;
      if (!failure) {
        std::string remote = RemoteAddress(socket);
        Begin(Socket(std::move(socket)), std::move(remote));
        Accept(acceptor);
        return;
      }
      // Most likely no descriptor is free: some will be.
      auto pause = std::make_shared<asio::steady_timer>(io_, kTick);
      pause->async_wait([this, &acceptor, pause](const error_code&) {
        if (acceptor.is_open()) Accept(acceptor);
      });
    });
  }

  void Begin(Socket socket, std::string remote) {
    if (clients_.size() >= limits_.connections) {
      ++context_.counts.refused;
      return;  // The destructor of the socket closes it.
    }
    const auto client = std::make_shared<ClientConnection>(
        context_, std::move(socket), std::move(remote), [this](ClientConnection& closed) {
          clients_.erase(&closed);
          context_.counts.clients = clients_.size();
          CheckDrained();
        });
    clients_.emplace(client.get(), client);
    context_.counts.clients = clients_.size();
    client->Start(tls_.get());
  }

  // A copy, since a connection that ends leaves the map.
  std::vector<std::shared_ptr<ClientConnection>> AllClients() const {
    std::vector<std::shared_ptr<ClientConnection>> all;
    all.reserve(clients_.size());
    for (const auto& [key, client] : clients_) all.push_back(client);
    return all;
  }

  std::vector<std::shared_ptr<UpstreamCall>> AllCalls() const {
    std::vector<std::shared_ptr<UpstreamCall>> all;
    all.reserve(context_.calls.size());
    for (UpstreamCall* const call : context_.calls)
      if (auto alive = call->weak_from_this().lock()) all.push_back(std::move(alive));
    return all;
  }

  void AwaitTick() {
    timer_.expires_after(kTick);
    timer_.async_wait([this](const error_code& failure) {
      if (failure) return;
      Tick();
      AwaitTick();
    });
  }

  void Tick() {
    ++ticks_;
    context_.handler.Tick(*this);
    if (ticks_ % kTicksPerCheck == 0) CheckDeadlines();
    if (ticks_ % kTicksPerLive == 0) SendLive();
  }

  void CheckDeadlines() {
    const TimePoint now = context_.clock.Now();
    for (const auto& client : AllClients()) client->CheckTime(now);
    for (const auto& call : AllCalls()) call->CheckTime(now);
    for (const auto& upstream : upstreams_) upstream->CheckIdle(now);
  }

  void SendLive() {
    std::vector<std::shared_ptr<ClientConnection>> live;
    for (const auto& [key, client] : clients_)
      if (client->is_live()) live.push_back(client);
    if (live.empty()) return;
    const std::string text = context_.handler.LiveText();
    for (const auto& client : live) client->SendLive(text);
  }

  void CheckDrained() {
    if (!context_.draining || !clients_.empty()) return;
    const std::lock_guard lock(mutex_);
    drained_ = true;
    gone_.notify_all();
  }

  const ProxyLimits limits_;
  http::MemoryBudget bodies_;
  std::vector<char> buffer_;
  std::string url_{};
  std::string socket_path_{};
  Context tls_{nullptr, &SSL_CTX_free};
  // The thread of the sockets alone uses the following. The context outlives the handlers that wait
  // in io_, which own connections.
  ProxyContext context_;
  asio::io_context io_{1};
  std::vector<std::unique_ptr<Upstream>> upstreams_{};
  std::optional<tcp::acceptor> tcp_{};
  std::optional<Local::acceptor> local_{};
  asio::steady_timer timer_{io_};
  std::uint64_t ticks_ = 0;
  std::unordered_map<ClientConnection*, std::shared_ptr<ClientConnection>> clients_{};
  std::mutex mutex_;
  std::condition_variable gone_;
  bool drained_ = false;  // Guarded by mutex_.
  std::unique_ptr<Ticker> thread_{};
};

Proxy::Proxy(std::unique_ptr<State> state) : state_(std::move(state)) {}
Proxy::~Proxy() = default;

Result<std::unique_ptr<Proxy>> Proxy::Start(const ProxyOptions& options, ProxyHandler& handler,
                                            ProxyCounts& counts, const Clock& clock) {
  try {
    auto state = std::make_unique<State>(options, handler, counts, clock);
    ZEUS_RETURN_IF_ERROR(state->Listen(options));
    return std::unique_ptr<Proxy>(new Proxy(std::move(state)));
  } catch (const std::system_error& error) {
    if (!IsNoThread(error)) throw;
    return NoThreadError();
  }
}

const std::string& Proxy::url() const { return state_->url(); }
void Proxy::BeginShutdown() { state_->BeginShutdown(); }
bool Proxy::WaitForShutdown(Seconds timeout) { return state_->WaitForShutdown(timeout); }

}  // namespace zeus::gateway
