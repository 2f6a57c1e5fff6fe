#include "zeus/http/server.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <set>

#include "zeus/base/log.h"
#include "zeus/base/ticker.h"
#include "zeus/http/regular_file.h"
#include "zeus/http/session.h"
#include "zeus/http/tls.h"
#include "zeus/http/url.h"

namespace zeus::http {
namespace {

using asio::ip::tcp;
using Local = asio::local::stream_protocol;
using TlsStream = asio::ssl::stream<tcp::socket>;

constexpr TimePoint kNever{Seconds(1e9)};  // Never comes: io_context::run() is called once.
constexpr auto kCheckPeriod = std::chrono::milliseconds(100);
constexpr std::size_t kReserve = 16;  // Connections beyond the limit, for vital requests.

Error CannotListen(const std::string& listen, const error_code& failure) {
  return {failure == asio::error::access_denied ? ErrorCode::kPermissionDenied
                                                : ErrorCode::kUnavailable,
          fmt::format("cannot listen on {}: {}", Printable(listen), failure.message())};
}

Result<tcp::endpoint> Resolve(asio::io_context& io, const ListenAddress& address) {
  tcp::resolver resolver(io);
  error_code failure;
  const auto found =
      resolver.resolve(address.host, std::to_string(address.port), tcp::resolver::passive, failure);
  if (failure || found.empty())
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} is no address of this machine", Quote(address.host))};
  return found.begin()->endpoint();
}

// Removes the socket that an earlier server left behind. Returns kUnavailable when a server still
// listens on it.
Status RemoveStaleSocket(asio::io_context& io, const std::string& path) {
  if (!std::filesystem::is_socket(path)) return Ok();
  Local::socket probe(io);
  error_code failure;
  probe.connect(Local::endpoint(path), failure);
  if (!failure)
    return Error{ErrorCode::kUnavailable,
                 fmt::format("cannot listen on {}: another server does", Printable(path))};
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  return Ok();
}

// The identity of the file at a path.
struct SocketFile {
  dev_t device;
  ino_t number;

  static std::optional<SocketFile> At(const std::string& path) {
    struct stat state {};
    if (::lstat(path.c_str(), &state) != 0) return std::nullopt;
    return SocketFile{.device = state.st_dev, .number = state.st_ino};
  }
  bool operator==(const SocketFile&) const = default;
};

std::string RemoteName(const tcp::socket& socket) {
  error_code failure;
  const auto endpoint = socket.remote_endpoint(failure);
  return failure ? "unknown"
                 : fmt::format("{}:{}", endpoint.address().to_string(), endpoint.port());
}
std::string RemoteName(const Local::socket&) { return "unix"; }

// The key by which connections are counted: an IPv4 address, or the /64 network of an IPv6 address,
// since one client owns a whole such network.
std::string CountingKey(const tcp::socket& socket) {
  error_code failure;
  const auto endpoint = socket.remote_endpoint(failure);
  if (failure) return "unknown";
  if (endpoint.address().is_v4()) return endpoint.address().to_string();
  auto bytes = endpoint.address().to_v6().to_bytes();
  if (endpoint.address().to_v6().is_v4_mapped()) return endpoint.address().to_string();
  std::fill(bytes.begin() + 8, bytes.end(), 0);
  return asio::ip::address_v6(bytes).to_string();
}
std::string CountingKey(const Local::socket&) { return ""; }

void Tune(tcp::socket& socket) {
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
}
void Tune(Local::socket&) {}

}  // namespace

bool IsLocal(const std::string& listen) {
  const auto address = ParseListenAddress(listen);
  if (!address.ok() || address.value().is_unix()) return true;
  asio::io_context io;
  const auto endpoint = Resolve(io, address.value());
  return !endpoint.ok() || endpoint.value().address().is_loopback();
}

class Server::State {
 public:
  State(const ServerOptions& options, RequestHandler& handler, ConnectionCounts& counts,
        const Clock& clock)
      : limits_(options.limits),
        counts_(counts),
        clock_(clock),
        bodies_(options.limits.bodies),
        answers_(options.limits.answers),
        places_({.connections = options.limits.connections,
                 .per_address = options.limits.per_address,
                 .reserve = kReserve}),
        readers_(options.limits.readers),
        workers_(options.limits.workers),
        slow_workers_(options.limits.slow_workers),
        context_{.io = io_,
                 .handler = handler,
                 .readers = readers_,
                 .workers = workers_,
                 .slow_workers = slow_workers_,
                 .clock = clock,
                 .limits = limits_,
                 .bodies = bodies_,
                 .answers = answers_,
                 .draining = draining_,
                 .make_request_id = [this] { return fmt::format("{:x}", ++request_ids_); },
                 .wake_topic = [this](const std::string& topic) { WakeTopic(topic); }} {
    // Starting from the time keeps the ids of two runs of the server apart in one log.
    request_ids_ = static_cast<std::uint64_t>(clock.WallNow().time_since_epoch().count()) << 8;
  }

  ~State() {
    io_.stop();
    thread_.reset();
    // By now the path may belong to the socket of another server.
    if (socket_file_ && SocketFile::At(socket_path_) == socket_file_)
      ::unlink(socket_path_.c_str());
  }

  Status Listen(const ServerOptions& options) {
    if (options.tls) {
      tls_files_ = options.tls;
      tls_stamps_ = ReadStamps(*tls_files_);
      tls_.emplace(asio::ssl::context::tls_server);
      ZEUS_RETURN_IF_ERROR(LoadTls(*tls_files_, *tls_->native_handle()));
    }
    ZEUS_TRY(const ListenAddress address, ParseListenAddress(options.listen));
    if (address.is_unix()) {
      ZEUS_RETURN_IF_ERROR(ListenOnUnixSocket(address.socket_path));
    } else {
      ZEUS_RETURN_IF_ERROR(ListenOnTcp(options.listen, address));
    }
    asio::co_spawn(io_, CheckDeadlines(), asio::detached);
    thread_ = std::make_unique<Ticker>("zeus-http", [this] {
      io_.run();
      return kNever;
    });
    return Ok();
  }

  const std::string& url() const { return url_; }

  Result<bool> RefreshTls() {
    if (!tls_files_) return false;
    const TlsStamps stamps = ReadStamps(*tls_files_);
    if (stamps == tls_stamps_) return false;
    auto fresh = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_server);
    // The stamps stay when this fails: a new certificate may be there before its key is.
    ZEUS_RETURN_IF_ERROR(LoadTls(*tls_files_, *fresh->native_handle()));
    tls_stamps_ = stamps;
    // Existing connections hold references to the parts of the old context that they use.
    asio::post(io_, [this, fresh] { *tls_ = std::move(*fresh); });
    return true;
  }

  void BeginShutdown() {
    asio::post(io_, [this] {
      draining_ = true;
      error_code ignored;
      if (tcp_) tcp_->close(ignored);
      if (local_) local_->close(ignored);
      const TimePoint now = clock_.Now();
      for (const auto& session : sessions_) session->Drain(now);
      CheckDrained();
    });
  }

  bool WaitForShutdown(Seconds timeout) {
    std::unique_lock lock(mutex_);
    const auto until = std::chrono::time_point_cast<std::chrono::nanoseconds>(
        clock_.Now() + std::chrono::duration_cast<std::chrono::nanoseconds>(timeout));
    return gone_.wait_until(lock, until, [this] { return drained_; });
  }

 private:
  using Sessions = std::set<std::shared_ptr<SessionControl>>;
  using Place = ConnectionPlaces::Place;
  using TlsStamps = std::pair<FileStamp, FileStamp>;

  static TlsStamps ReadStamps(const TlsFiles& files) {
    return {FileStamp::Of(files.certificate), FileStamp::Of(files.key)};
  }

  Status ListenOnTcp(const std::string& listen, const ListenAddress& address) {
    ZEUS_TRY(const tcp::endpoint endpoint, Resolve(io_, address));
    error_code failure;
    tcp_.emplace(io_);
    tcp_->open(endpoint.protocol(), failure);
    if (!failure) tcp_->set_option(tcp::acceptor::reuse_address(true), failure);
    if (!failure) tcp_->bind(endpoint, failure);
    if (!failure) tcp_->listen(asio::socket_base::max_listen_connections, failure);
    if (failure) return CannotListen(listen, failure);
    url_ = fmt::format("{}://{}", tls_ ? "https" : "http",
                       Authority(address.host, tcp_->local_endpoint().port()));
    asio::co_spawn(io_, Accept(*tcp_), asio::detached);
    return Ok();
  }

  Status ListenOnUnixSocket(const std::string& path) {
    if (tls_)
      return Error{ErrorCode::kInvalidArgument, "a Unix socket needs no TLS: leave --tls-cert out"};
    ZEUS_RETURN_IF_ERROR(RemoveStaleSocket(io_, path));
    error_code failure;
    local_.emplace(io_);
    local_->open(Local(), failure);
    if (!failure) local_->bind(Local::endpoint(path), failure);
    if (!failure) {
      socket_path_ = path;
      socket_file_ = SocketFile::At(path);
    }
    if (!failure) local_->listen(asio::socket_base::max_listen_connections, failure);
    if (failure) return CannotListen(path, failure);
    url_ = "unix:" + path;
    asio::co_spawn(io_, Accept(*local_), asio::detached);
    return Ok();
  }

  template <class Acceptor>
  asio::awaitable<void> Accept(Acceptor& acceptor) {
    while (acceptor.is_open()) {
      error_code failure;
      auto socket =
          co_await acceptor.async_accept(asio::redirect_error(asio::use_awaitable, failure));
      if (!failure) {
        Begin(std::move(socket));
      } else if (acceptor.is_open()) {  // Most likely no descriptor is free: some will be.
        asio::steady_timer pause(io_, kCheckPeriod);
        co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, failure));
      }
    }
  }

  template <class Socket>
  void Begin(Socket socket) {
    const std::string address = CountingKey(socket);
    Place place = places_.Assign(address);
    if (place != Place::kOrdinary) ++counts_.refused;
    if (place == Place::kNone && EndOneOfReserve()) place = places_.AssignReserve();
    if (place == Place::kNone) return;  // The destructor of the socket closes it.
    Tune(socket);
    Peer peer{.name = RemoteName(socket), .address = address};
    if constexpr (std::is_same_v<Socket, tcp::socket>) {
      if (tls_) {
        Spawn(std::make_shared<Session<TlsStream>>(TlsStream(std::move(socket), *tls_),
                                                   std::move(peer), context_),
              place, address);
        return;
      }
    }
    Spawn(std::make_shared<Session<Socket>>(std::move(socket), std::move(peer), context_), place,
          address);
  }

  template <class S>
  void Spawn(std::shared_ptr<S> session, Place place, const std::string& address) {
    sessions_.insert(session);
    if (place == Place::kReserve) reserve_.push_back(session);
    asio::co_spawn(io_, place == Place::kOrdinary ? session->Run() : session->RunReserved(),
                   [this, session, place, address](const std::exception_ptr& failure) {
                     sessions_.erase(session);
                     if (place == Place::kReserve) std::erase(reserve_, session);
                     places_.Release(place, address);
                     if (failure) log::Failure("a connection ended with an exception");
                     CheckDrained();
                   });
  }

  // Ends the oldest connection of the reserve that has not sent its request yet: a health check
  // sends it at once and need not wait behind such a connection. Returns whether there was one.
  bool EndOneOfReserve() {
    const auto oldest = std::ranges::find_if(
        reserve_, [](const auto& session) { return session->is_expendable(); });
    if (oldest == reserve_.end()) return false;
    (*oldest)->End();
    return true;
  }

  // Checks the deadlines of all connections ten times a second, which is cheaper than a timer for
  // each step of each connection.
  asio::awaitable<void> CheckDeadlines() {
    asio::steady_timer timer(io_);
    while (true) {
      timer.expires_after(kCheckPeriod);
      co_await timer.async_wait(asio::use_awaitable);
      const TimePoint now = clock_.Now();
      std::size_t streams = 0;
      for (const auto& session : sessions_) {
        session->CheckTime(now);
        if (session->is_stream()) ++streams;
      }
      counts_.open = sessions_.size();
      counts_.streams = streams;
    }
  }

  void WakeTopic(const std::string& topic) {
    for (const auto& session : sessions_) session->WakeTopic(topic);
  }

  void CheckDrained() {
    if (!draining_ || !sessions_.empty()) return;
    const std::lock_guard lock(mutex_);
    drained_ = true;
    gone_.notify_all();
  }

  const Limits limits_;
  ConnectionCounts& counts_;
  const Clock& clock_;
  MemoryBudget bodies_;
  MemoryBudget answers_;
  // The thread of the sockets alone uses the following.
  ConnectionPlaces places_;
  bool draining_ = false;
  std::uint64_t request_ids_ = 0;
  std::string url_{};
  std::string socket_path_{};
  std::optional<SocketFile> socket_file_{};
  std::optional<TlsFiles> tls_files_{};
  TlsStamps tls_stamps_{};  // Used by the caller of RefreshTls() alone, as are the files.
  std::optional<asio::ssl::context> tls_{};
  asio::io_context io_{1};
  std::optional<tcp::acceptor> tcp_{};
  std::optional<Local::acceptor> local_{};
  std::mutex mutex_;
  std::condition_variable gone_;
  bool drained_ = false;  // Guarded by mutex_.
  WorkerPool readers_;
  WorkerPool workers_;
  WorkerPool slow_workers_;
  SessionContext context_;
  Sessions sessions_{};
  std::deque<std::shared_ptr<SessionControl>>
      reserve_{};  // The members of sessions_ in the reserve, oldest first.
  std::unique_ptr<Ticker> thread_{};
};

Server::Server(std::unique_ptr<State> state) : state_(std::move(state)) {}
Server::~Server() = default;

Result<std::unique_ptr<Server>> Server::Start(const ServerOptions& options, RequestHandler& handler,
                                              ConnectionCounts& counts, const Clock& clock) {
  try {
    auto state = std::make_unique<State>(options, handler, counts, clock);
    ZEUS_RETURN_IF_ERROR(state->Listen(options));
    return std::unique_ptr<Server>(new Server(std::move(state)));
  } catch (const std::system_error& error) {
    if (!IsNoThread(error)) throw;
    return NoThreadError();
  }
}

Result<bool> Server::RefreshTls() { return state_->RefreshTls(); }
const std::string& Server::url() const { return state_->url(); }
void Server::BeginShutdown() { state_->BeginShutdown(); }
bool Server::WaitForShutdown(Seconds timeout) { return state_->WaitForShutdown(timeout); }

}  // namespace zeus::http
