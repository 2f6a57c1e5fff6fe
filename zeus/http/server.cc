#include "zeus/http/server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <set>

#include "zeus/base/log.h"
#include "zeus/base/ticker.h"
#include "zeus/http/departure_watch.h"
#include "zeus/http/regular_file.h"
#include "zeus/http/session.h"
#include "zeus/http/socket_file.h"
#include "zeus/http/tls.h"
#include "zeus/http/url.h"

namespace zeus::http {
namespace {

using asio::ip::tcp;
using Local = asio::local::stream_protocol;
using TlsStream = asio::ssl::stream<tcp::socket>;

constexpr TimePoint kNever{Seconds(1e9)};  // Never comes: io_context::run() is called once.
constexpr auto kCheckPeriod = std::chrono::milliseconds(100);
// So many connections are looked at less often: deadlines are seconds.
constexpr std::size_t kMany = 200;
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
                 .wake_topic = [this](const std::string& topic) { WakeTopic(topic); },
                 .bell = bell_,
                 .courier = std::make_shared<Courier>(
                     [this](Courier::Task task) { asio::post(io_, std::move(task)); }),
                 .chunk = chunk_} {
    // Starting from the time keeps the ids of two runs of the server apart in one log.
    request_ids_ = static_cast<std::uint64_t>(clock.WallNow().time_since_epoch().count()) << 8;
  }

  ~State() {
    context_.courier->Close();
    io_.stop();
    thread_.reset();
    socket_file_.reset();  // Before running tasks are waited for.
  }

  Status Listen(const ServerOptions& options) {
    if (options.tls) {
      tls_files_ = options.tls;
      tls_stamps_ = ReadStamps(*tls_files_);
      tls_.emplace(asio::ssl::context::tls_server);
      ZEUS_RETURN_IF_ERROR(LoadTls(*tls_files_, *tls_->native_handle()));
    }
    ZEUS_RETURN_IF_ERROR(ListenAsAsked(options));
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
      for (const auto& session : sessions_) session->Drain(now, limits_.last_write);
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
  using TlsStamps = std::array<FileStamp, 3>;

  static TlsStamps ReadStamps(const TlsFiles& files) {
    return {FileStamp::Of(files.certificate), FileStamp::Of(files.key),
            FileStamp::Of(files.client_authorities)};
  }

  Status ListenAsAsked(const ServerOptions& options) {
    if (options.listening_descriptor) return ListenOnDescriptor(*options.listening_descriptor);
    ZEUS_TRY(const ListenAddress address, ParseListenAddress(options.listen));
    if (!address.is_unix()) return ListenOnTcp(options.listen, address);
    ZEUS_RETURN_IF_ERROR(CheckNoTls());
    ZEUS_TRY(socket_file_, SocketFile::Listen(address.socket_path, options.permissions));
    return AcceptFrom(socket_file_->TakeDescriptor(), address.socket_path);
  }

  Status CheckNoTls() const {
    if (!tls_) return Ok();
    return Error{ErrorCode::kInvalidArgument, "a Unix socket needs no TLS: leave --tls-cert out"};
  }

  Status ListenOnDescriptor(int descriptor) {
    ZEUS_TRY(ForeignListener listener, DuplicateListener(descriptor));
    if (listener.family == AF_UNIX) {
      ZEUS_RETURN_IF_ERROR(CheckNoTls());
      return AcceptFrom(std::move(listener.descriptor), listener.path);
    }
    tcp_.emplace(io_);
    error_code failure;
    tcp_->assign(listener.family == AF_INET ? tcp::v4() : tcp::v6(), Give(*listener.descriptor),
                 failure);
    if (failure) return CannotListen("an inherited socket", failure);
    BeginAcceptingTcp(tcp_->local_endpoint().address().to_string());
    return Ok();
  }

  // Asio closes the descriptors that it is given, and so does a FileDescriptor.
  static int Give(const FileDescriptor& descriptor) {
    return ::fcntl(descriptor.get(), F_DUPFD_CLOEXEC, 0);
  }

  Status AcceptFrom(std::unique_ptr<FileDescriptor> descriptor, const std::string& path) {
    local_.emplace(io_);
    error_code failure;
    local_->assign(Local(), Give(*descriptor), failure);
    if (failure) return CannotListen(path, failure);
    url_ = "unix:" + path;
    asio::co_spawn(io_, Accept(*local_), asio::detached);
    return Ok();
  }

  void BeginAcceptingTcp(const std::string& host) {
    url_ = fmt::format("{}://{}", tls_ ? "https" : "http",
                       Authority(host, tcp_->local_endpoint().port()));
    asio::co_spawn(io_, Accept(*tcp_), asio::detached);
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
    BeginAcceptingTcp(address.host);
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

  // Asks the handler who is there, and finds a place for the connection.
  template <class Socket>
  void Begin(Socket socket) {
    Peer peer{.name = RemoteName(socket)};
    Reception reception =
        context_.handler.Connected({.transport = std::is_same_v<Socket, tcp::socket>
                                                     ? AcceptedConnection::Transport::kTcp
                                                     : AcceptedConnection::Transport::kUnixSocket,
                                    .descriptor = socket.native_handle(),
                                    .remote = peer.name});
    peer.attendance = std::make_unique<Attendance>(context_.handler, std::move(reception.peer));
    peer.refusal = std::move(reception.refusal);
    peer.address =
        reception.counting_key.empty() ? CountingKey(socket) : std::move(reception.counting_key);
    const Place place = PlaceFor(peer);
    if (place == Place::kNone) return;  // The destructor of the socket closes it.
    Tune(socket);
    if constexpr (std::is_same_v<Socket, tcp::socket>) {
      if (tls_)
        return Spawn<TlsStream>(TlsStream(std::move(socket), *tls_), std::move(peer), place);
    }
    Spawn<Socket>(std::move(socket), std::move(peer), place);
  }

  Place PlaceFor(const Peer& peer) {
    Place place = peer.refusal.empty() ? places_.Assign(peer.address) : places_.AssignRefused();
    if (place != Place::kOrdinary) ++counts_.refused;
    if (place == Place::kNone && EndOneOfReserve()) place = places_.AssignReserve();
    return place;
  }

  template <class Stream>
  void Spawn(Stream stream, Peer peer, Place place) {
    const std::string address = peer.address;
    const bool attended = peer.attendance->peer() != nullptr;
    const int descriptor = stream.lowest_layer().native_handle();
    auto session = std::make_shared<Session<Stream>>(std::move(stream), std::move(peer), context_);
    const std::uint64_t number = ++connections_;
    if (attended && Watch(descriptor, number)) watched_[number] = session.get();
    sessions_.insert(session);
    if (place == Place::kReserve) reserve_.push_back(session);
    if (sleeping_) check_timer_.cancel();
    asio::co_spawn(io_, place == Place::kOrdinary ? session->Run() : session->RunReserved(),
                   [this, session, place, address, number](const std::exception_ptr& failure) {
                     watched_.erase(number);
                     sessions_.erase(session);
                     if (place == Place::kReserve) std::erase(reserve_, session);
                     places_.Release(place, address);
                     if (failure) log::Failure("a connection ended with an exception");
                     CheckDrained();
                   });
  }

  // Begins to watch for the end of a connection of which the handler knows something. Returns false
  // when the system has no descriptor left: then the end is noticed by reading and writing.
  bool Watch(int socket, std::uint64_t number) {
    if (!departures_) {
      auto watch = DepartureWatch::Start();
      if (!watch.ok()) return false;
      departures_.emplace(std::move(watch).value());
      departure_events_.emplace(io_, ::fcntl(departures_->descriptor(), F_DUPFD_CLOEXEC, 0));
      asio::co_spawn(io_, FollowDepartures(), asio::detached);
    }
    return departures_->Add(socket, number).ok();
  }

  asio::awaitable<void> FollowDepartures() {
    while (true) {
      co_await departure_events_->async_wait(asio::posix::stream_descriptor::wait_read,
                                             asio::use_awaitable);
      for (const std::uint64_t number : departures_->Take())
        if (const auto found = watched_.find(number); found != watched_.end())
          found->second->ClientGone();
    }
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

  // Checks the deadlines of all connections several times a second, which is cheaper than a timer
  // for each step of each connection. Sleeps while there is no connection.
  asio::awaitable<void> CheckDeadlines() {
    while (true) {
      sleeping_ = sessions_.empty();
      if (sleeping_)
        check_timer_.expires_at(asio::steady_timer::time_point::max());
      else
        check_timer_.expires_after(sessions_.size() < kMany ? kCheckPeriod : 5 * kCheckPeriod);
      error_code ignored;
      co_await check_timer_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
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
  std::unique_ptr<SocketFile> socket_file_{};  // Null when the server did not make the socket.
  std::optional<TlsFiles> tls_files_{};
  TlsStamps tls_stamps_{};  // Used by the caller of RefreshTls() alone, as are the files.
  std::optional<asio::ssl::context> tls_{};
  asio::io_context io_{1};
  std::optional<tcp::acceptor> tcp_{};
  std::optional<Local::acceptor> local_{};
  asio::steady_timer check_timer_{io_};
  bool sleeping_ = false;                       // The timer waits for the first connection.
  std::optional<DepartureWatch> departures_{};  // Since the first connection with a peer.
  std::optional<asio::posix::stream_descriptor> departure_events_{};
  std::uint64_t connections_ = 0;                       // Since the start; the last one's number.
  std::map<std::uint64_t, SessionControl*> watched_{};  // By number.
  std::mutex mutex_;
  std::condition_variable gone_;
  bool drained_ = false;  // Guarded by mutex_.
  NewsBell bell_{io_};
  SharedChunk chunk_;
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
