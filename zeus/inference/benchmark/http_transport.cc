// Boost.Asio and Boost.Beast are compiled here alone.
#include "zeus/inference/benchmark/http_transport.h"

#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>

namespace zeus::inference {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using asio::ip::tcp;
using boost::system::error_code;
using Socket = asio::generic::stream_protocol::socket;
using Endpoint = asio::generic::stream_protocol::endpoint;
using TlsStream = asio::ssl::stream<Socket&>;

constexpr std::size_t kReadSize = std::size_t{16} * 1024;
constexpr std::uint32_t kLargestHead = 64 * 1024;

// A connection to the server, in the clear or with TLS.
struct Connection {
  explicit Connection(asio::io_context& context) : socket(context) {}

  void Close() {
    error_code ignored;
    socket.close(ignored);
  }

  Socket socket;
  std::unique_ptr<TlsStream> tls{};
  beast::flat_buffer buffer{};  // Bytes that were read and not used yet.
  TimePoint idle_since{};
};

// Parts that all calls share.
struct Shared {
  Shared(const Clock& the_clock, HttpTransportOptions the_options)
      : clock(the_clock), options(std::move(the_options)) {}

  std::string authority() const {
    return options.url.port ? http::Authority(options.url.host, *options.url.port)
                            : options.url.host;
  }

  const Clock& clock;
  const HttpTransportOptions options;
  asio::io_context context{1};
  asio::ssl::context tls{asio::ssl::context::tls_client};
  std::vector<Endpoint> endpoints{};  // The addresses of the server, once its name was looked up.
  std::deque<std::unique_ptr<Connection>> idle{};
};

// One request and its answer. It lives as long as an operation of it is pending.
class Call final : public std::enable_shared_from_this<Call> {
 public:
  using Done = std::function<void(CallId)>;

  Call(Shared& shared, CallId id, const Outgoing& request, Transport::Listener& listener, Done done)
      : shared_(shared),
        id_(id),
        listener_(&listener),
        done_(std::move(done)),
        timer_(shared.context),
        resolver_(shared.context) {
    Compose(request);
  }

  void Begin() {
    const TimePoint now = shared_.clock.Now();
    auto& idle = shared_.idle;
    while (!idle.empty() && now - idle.front()->idle_since > shared_.options.longest_idle)
      idle.pop_front();
    if (!idle.empty()) {
      connection_ = std::move(idle.back());
      idle.pop_back();
      reused_ = true;
      Write();
    } else {
      Connect();
    }
  }

  // The listener hears no more.
  void Abort() {
    listener_ = nullptr;
    timer_.cancel();
    resolver_.cancel();
    if (connection_) connection_->Close();
  }

 private:
  void Compose(const Outgoing& request) {
    request_.method(beast::http::verb::post);
    request_.target(shared_.options.url.scheme == http::Url::Scheme::kUnix
                        ? request.target
                        : shared_.options.url.path + request.target);
    request_.version(11);
    request_.set(beast::http::field::host, shared_.options.url.scheme == http::Url::Scheme::kUnix
                                               ? "localhost"
                                               : shared_.authority());
    request_.set(beast::http::field::content_type, "application/json");
    request_.set(beast::http::field::accept, "text/event-stream, application/json");
    request_.set(beast::http::field::user_agent, "zeus-llm-bench");
    for (const auto& [name, value] : request.headers) request_.set(name, value);
    request_.body() = request.body;
    request_.prepare_payload();
  }

  void Connect() {
    reused_ = false;
    connecting_ = true;
    connection_ = std::make_unique<Connection>(shared_.context);
    timer_.expires_after(
        std::chrono::duration_cast<asio::steady_timer::duration>(shared_.options.connect_timeout));
    timer_.async_wait([self = shared_from_this()](error_code error) {
      if (!error && self->connecting_) self->Fail(FailureKind::kConnect, "no connection in time");
    });
    const http::Url& url = shared_.options.url;
    if (shared_.endpoints.empty() && url.scheme == http::Url::Scheme::kUnix)
      shared_.endpoints.emplace_back(asio::local::stream_protocol::endpoint(url.path));
    if (!shared_.endpoints.empty()) {
      ConnectTo(0);
      return;
    }
    const bool secure = url.scheme == http::Url::Scheme::kHttps;
    const std::string port = url.port ? std::to_string(*url.port) : secure ? "443" : "80";
    resolver_.async_resolve(
        url.host, port,
        [self = shared_from_this()](error_code error, const tcp::resolver::results_type& found) {
          if (self->listener_ == nullptr) return;
          if (error) {
            self->Fail(FailureKind::kConnect, "the host was not found: " + error.message());
            return;
          }
          auto& endpoints = self->shared_.endpoints;
          if (endpoints.empty())
            for (const auto& entry : found) endpoints.emplace_back(entry.endpoint());
          self->ConnectTo(0);
        });
  }

  // Tries the addresses of the server one after the other.
  void ConnectTo(std::size_t index) {
    connection_->Close();
    connection_->socket.async_connect(
        shared_.endpoints[index], [self = shared_from_this(), index](error_code error) {
          if (self->listener_ == nullptr) return;
          if (!error) {
            error_code ignored;
            self->connection_->socket.set_option(tcp::no_delay(true), ignored);
            self->Handshake();
          } else if (index + 1 < self->shared_.endpoints.size()) {
            self->ConnectTo(index + 1);
          } else {
            self->Fail(FailureKind::kConnect, error.message());
          }
        });
  }

  void Handshake() {
    const http::Url& url = shared_.options.url;
    if (url.scheme != http::Url::Scheme::kHttps) {
      Write();
      return;
    }
    connection_->tls = std::make_unique<TlsStream>(connection_->socket, shared_.tls);
    TlsStream& tls = *connection_->tls;
    // SSL_set_tlsext_host_name() is a macro with a C cast.
    SSL_ctrl(tls.native_handle(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
             const_cast<char*>(url.host.c_str()));  // NOLINT(cppcoreguidelines-pro-type-const-cast)
    tls.set_verify_callback(asio::ssl::host_name_verification(url.host));
    tls.async_handshake(asio::ssl::stream_base::client,
                        [self = shared_from_this()](error_code error) {
                          if (self->listener_ == nullptr) return;
                          if (error)
                            self->Fail(FailureKind::kConnect, "TLS: " + error.message());
                          else
                            self->Write();
                        });
  }

  // Calls `operation` with the stream that carries the bytes.
  template <class Operation>
  void OnStream(Operation&& operation) {
    if (connection_->tls)
      operation(*connection_->tls);
    else
      operation(connection_->socket);
  }

  void Write() {
    connecting_ = false;
    timer_.cancel();
    parser_.emplace();
    parser_->header_limit(kLargestHead);
    // Without a limit Boost 1.74 refuses every body that has a length.
    parser_->body_limit(std::numeric_limits<std::uint64_t>::max());
    auto written = [self = shared_from_this()](error_code error, std::size_t) {
      if (self->listener_ == nullptr) return;
      if (error)
        self->Break(error);
      else
        self->ReadHead();
    };
    OnStream([&](auto& stream) { beast::http::async_write(stream, request_, std::move(written)); });
  }

  void ReadHead() {
    auto read = [self = shared_from_this()](error_code error, std::size_t) {
      if (self->listener_ == nullptr) return;
      if (error)
        self->Break(error);
      else
        self->AcceptHead();
    };
    OnStream([&](auto& stream) {
      beast::http::async_read_header(stream, connection_->buffer, *parser_, std::move(read));
    });
  }

  void AcceptHead() {
    const auto& head = parser_->get();
    const auto text = [&head](auto name) {
      const auto found = head.find(name);
      return found == head.end() ? std::string()
                                 : std::string(found->value().data(), found->value().size());
    };
    listener_->OnHead(id_,
                      AnswerHead{.status = static_cast<int>(head.result_int()),
                                 .content_type = text(beast::http::field::content_type),
                                 .content_encoding = text(beast::http::field::content_encoding),
                                 .request_id = text("x-zeus-request")});
    if (listener_ != nullptr) ReadBody();
  }

  void ReadBody() {
    if (parser_->is_done()) {
      End();
      return;
    }
    parser_->get().body().data = bytes_.data();
    parser_->get().body().size = bytes_.size();
    auto read = [self = shared_from_this()](error_code error, std::size_t) {
      if (self->listener_ != nullptr) self->AcceptBody(error);
    };
    OnStream([&](auto& stream) {
      beast::http::async_read_some(stream, connection_->buffer, *parser_, std::move(read));
    });
  }

  void AcceptBody(error_code error) {
    if (error == beast::http::error::need_buffer) error = {};
    const std::size_t got = bytes_.size() - parser_->get().body().size;
    if (got > 0) listener_->OnBody(id_, {bytes_.data(), got});
    if (listener_ == nullptr) return;
    // A body without a length ends with the connection.
    if (error == asio::ssl::error::stream_truncated || error == asio::error::eof) {
      error_code incomplete;
      parser_->put_eof(incomplete);
      error = incomplete;
    }
    if (error)
      Break(error);
    else
      ReadBody();
  }

  // The connection failed. The server may have closed a kept one just before it was used.
  void Break(error_code error) {
    const bool untouched = !parser_ || !parser_->got_some();
    if (reused_ && untouched) {
      connection_->Close();
      Connect();
      return;
    }
    Fail(FailureKind::kBroken,
         error == beast::http::error::end_of_stream || error == beast::http::error::partial_message
             ? "the server closed the connection too early"
             : error.message());
  }

  void End() {
    if (parser_->keep_alive() && connection_->buffer.size() == 0) {
      connection_->idle_since = shared_.clock.Now();
      shared_.idle.push_back(std::move(connection_));
    }
    Transport::Listener* const listener = std::exchange(listener_, nullptr);
    done_(id_);
    listener->OnEnd(id_);
  }

  void Fail(FailureKind kind, const std::string& message) {
    Transport::Listener* const listener = listener_;
    if (listener == nullptr) return;
    Abort();
    done_(id_);
    listener->OnFailure(id_, CallFailure{kind, 0, message});
  }

  Shared& shared_;
  const CallId id_;
  Transport::Listener* listener_;  // Null once it hears no more.
  const Done done_;
  asio::steady_timer timer_;
  tcp::resolver resolver_;
  beast::http::request<beast::http::string_body> request_{};
  std::unique_ptr<Connection> connection_{};
  bool reused_ = false;
  bool connecting_ = false;
  std::optional<beast::http::response_parser<beast::http::buffer_body>> parser_{};
  std::array<char, kReadSize> bytes_{};
};

}  // namespace

class HttpTransport::State {
 public:
  State(const Clock& clock, const HttpTransportOptions& options) : shared_(clock, options) {}

  ~State() {
    for (auto& [id, call] : calls_) call->Abort();
    calls_.clear();
    shared_.idle.clear();
    shared_.context.poll();
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  Status LoadAuthorities() {
    error_code error;
    shared_.tls.set_verify_mode(asio::ssl::verify_peer, error);
    if (!shared_.options.authorities.empty())
      shared_.tls.load_verify_file(shared_.options.authorities, error);
    else
      shared_.tls.set_default_verify_paths(error);
    if (!error) return Ok();
    return InvalidArgument(fmt::format("{} holds no certificate in PEM format: {}",
                                       shared_.options.authorities, error.message()));
  }

  void Start(CallId id, const Outgoing& request, Listener& listener) {
    const auto call = std::make_shared<Call>(shared_, id, request, listener,
                                             [this](CallId ended) { calls_.erase(ended); });
    calls_.emplace(id, call);
    call->Begin();
  }

  void Abort(CallId id) {
    const auto found = calls_.find(id);
    if (found == calls_.end()) return;
    const std::shared_ptr<Call> call = found->second;
    calls_.erase(found);
    call->Abort();
  }

  void WaitUntil(TimePoint deadline) {
    const Seconds left = std::max(Seconds(0), deadline - shared_.clock.Now());
    shared_.context.restart();
    shared_.context.run_one_for(
        std::chrono::duration_cast<std::chrono::steady_clock::duration>(left));
    shared_.context.poll();
  }

 private:
  Shared shared_;
  std::unordered_map<CallId, std::shared_ptr<Call>> calls_{};
  // Without it a wait without calls would return at once.
  asio::executor_work_guard<asio::io_context::executor_type> work_ =
      asio::make_work_guard(shared_.context);
};

HttpTransport::HttpTransport(std::unique_ptr<State> state) : state_(std::move(state)) {}
HttpTransport::~HttpTransport() = default;

Result<std::unique_ptr<HttpTransport>> HttpTransport::Create(const Clock& clock,
                                                             const HttpTransportOptions& options) {
  auto state = std::make_unique<State>(clock, options);
  if (options.url.scheme == http::Url::Scheme::kHttps)
    ZEUS_RETURN_IF_ERROR(state->LoadAuthorities());
  return std::unique_ptr<HttpTransport>(new HttpTransport(std::move(state)));
}

void HttpTransport::Start(CallId call, const Outgoing& request, Listener& listener) {
  state_->Start(call, request, listener);
}
void HttpTransport::Abort(CallId call) { state_->Abort(call); }
void HttpTransport::WaitUntil(TimePoint deadline) { state_->WaitUntil(deadline); }

}  // namespace zeus::inference
