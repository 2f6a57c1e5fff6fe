// A thin layer over cpp-httplib, which no other client of the tree includes. It adds what httplib
// lacks: a bound on the size of replies, and reasons for failures that a user can act on.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <httplib.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "zeus/base/clock.h"
#include "zeus/base/text.h"
#include "zeus/http/client_connection.h"
#include "zeus/http/tls.h"

namespace zeus::http {
namespace {

std::string MethodName(Method method) {
  switch (method) {
    case Method::kGet:
      return "GET";
    case Method::kPost:
      return "POST";
    case Method::kPut:
      return "PUT";
    case Method::kDelete:
      return "DELETE";
  }
  return "GET";
}

bool IsAddressLiteral(const std::string& host) {
  in6_addr ignored{};  // Large enough for either kind.
  return ::inet_pton(AF_INET, host.c_str(), &ignored) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), &ignored) == 1;
}

// The body of a reply may take so many times the timeout of one read.
constexpr double kAnswerTimeouts = 4;

class HttplibConnection final : public ClientConnection {
 public:
  explicit HttplibConnection(ConnectionPlan plan)
      : url_(std::move(plan.url)),
        options_(std::move(plan.options)),
        resolve_(std::move(plan.resolve)),
        server_(url_.server()),
        prefix_(url_.scheme == Url::Scheme::kUnix ? "" : url_.path),
        client_(url_.scheme == Url::Scheme::kUnix ? url_.path : server_) {
    if (url_.scheme == Url::Scheme::kUnix) client_.set_address_family(AF_UNIX);
    const auto limit = [](Seconds time) {
      return std::chrono::duration_cast<std::chrono::microseconds>(time);
    };
    client_.set_connection_timeout(limit(options_.connect_timeout));
    client_.set_read_timeout(limit(options_.answer_timeout));
    client_.set_write_timeout(limit(options_.answer_timeout));
    client_.set_follow_location(false);
    client_.set_keep_alive(options_.keep_connection);
    client_.set_tcp_nodelay(true);
    if (!options_.authorities.empty()) client_.set_ca_cert_path(options_.authorities);
    if (SSL_CTX* const context = client_.ssl_context()) tls_.Attach(*context);
  }

  Result<Reply> Send(const Call& call, const Client::Piece& piece) override {
    const std::lock_guard lock(mutex_);
    std::string body;
    bool is_success = false;
    httplib::Request request = MakeRequest(call, body);
    if (piece) PassPieces(piece, is_success, request);
    if (cancelled_) return Error{ErrorCode::kUnavailable, "the call was cancelled"};
    interrupted_ = false;
    refusal_.clear();
    if (url_.scheme == Url::Scheme::kUnix || IsAddressLiteral(url_.host))
      return MakeReply(client_.send(request), body);
    if (addresses_.empty()) {
      ZEUS_TRY(addresses_,
               resolve_(url_.host, options_.connect_timeout, [this] { return must_end(); }));
    }
    return SendToAnyAddress(request, body);
  }

  void Interrupt() override {
    interrupted_ = true;
    client_.stop();
  }

  void Cancel() override {
    cancelled_ = true;
    client_.stop();
  }

 private:
  bool must_end() const { return interrupted_ || cancelled_; }

  // The request writes the reply's body to `body`, which must outlive it.
  httplib::Request MakeRequest(const Call& call, std::string& body) {
    httplib::Request request;
    request.method = MethodName(call.method);
    request.path = prefix_ + call.path;
    request.body = call.body;
    for (const auto& [name, value] : call.headers) request.headers.emplace(name, value);
    if (call.method == Method::kPost || call.method == Method::kPut)
      request.headers.emplace("Content-Type", call.content_type);
    if (!options_.token.empty())
      request.headers.emplace("Authorization", "Bearer " + options_.token);
    // HTTP requires a host, and a Unix socket has none.
    if (url_.scheme == Url::Scheme::kUnix) request.headers.emplace("Host", "localhost");
    const TimePoint deadline = clock_.Now() + kAnswerTimeouts * options_.answer_timeout;
    request.content_receiver = [this, &body, deadline](const char* data, std::size_t size,
                                                       std::uint64_t, std::uint64_t) {
      body.append(data, size);
      if (body.size() > options_.largest_body)
        refusal_ = fmt::format("larger than {} bytes", options_.largest_body);
      else if (clock_.Now() > deadline)
        refusal_ = fmt::format("not complete after {:g} s",
                               (kAnswerTimeouts * options_.answer_timeout).count());
      return refusal_.empty() && !must_end();
    };
    return request;
  }

  // Has the body of a successful reply passed on; that of another one is collected.
  void PassPieces(const Client::Piece& piece, bool& is_success, httplib::Request& request) {
    request.response_handler = [&is_success](const httplib::Response& head) {
      is_success = head.status >= 200 && head.status < 300;
      return true;
    };
    request.content_receiver = [this, &piece, &is_success, collect = request.content_receiver](
                                   const char* data, std::size_t size, std::uint64_t offset,
                                   std::uint64_t total) {
      if (!is_success) return collect(data, size, offset, total);
      if (!must_end() && piece({data, size})) return true;
      if (refusal_.empty()) refusal_ = "not wanted any more";
      return false;
    };
  }

  // Tries the known addresses in turn until one accepts the connection. That one comes first at the
  // next call. When none accepts, the next call looks the name up again.
  Result<Reply> SendToAnyAddress(const httplib::Request& request, std::string& body) {
    using Code = httplib::Error;
    for (std::size_t i = 0; i < addresses_.size(); ++i) {
      client_.set_hostname_addr_map({{url_.host, addresses_[i]}});
      const httplib::Result answer = client_.send(request);
      const bool refused =
          answer.error() == Code::Connection || answer.error() == Code::ConnectionTimeout;
      if (refused && i + 1 < addresses_.size() && !must_end()) continue;
      if (answer && options_.keep_connection)
        std::swap(addresses_[0], addresses_[i]);
      else
        addresses_.clear();
      return MakeReply(answer, body);
    }
    return Error{ErrorCode::kUnavailable, "there is no address for " + Quote(url_.host)};
  }

  Result<Reply> MakeReply(const httplib::Result& answer, std::string& body) const {
    if (!answer) return Error{ErrorCode::kUnavailable, Explain(answer.error())};
    Reply reply{.status = answer->status, .body = std::move(body)};
    const auto seconds = ParseUnsigned(answer->get_header_value("Retry-After"));
    if (seconds.ok()) reply.retry_after = Seconds(static_cast<double>(seconds.value()));
    return reply;
  }

  std::string Explain(httplib::Error error) const {
    using Code = httplib::Error;
    if (!refusal_.empty())
      return fmt::format("the answer of {} is {}: is it the right server?", server_, refusal_);
    if (error == Code::SSLServerVerification)
      return fmt::format("{} is not trusted: {}", server_, tls_.Explain(url_.host));
    if (error == Code::SSLLoadingCerts)
      return fmt::format("no certificates to trust could be read for {}: {}", server_,
                         options_.authorities.empty()
                             ? std::string("this system has none (install ca-certificates)")
                             : Printable(options_.authorities) + " holds none in PEM format");
    if (error == Code::SSLConnection)
      return fmt::format(
          "{} does not speak TLS as we do: if it serves plain HTTP, its address begins with "
          "http://",
          server_);
    std::string why =
        fmt::format("no answer from {} ({})", server_, LowerCase(httplib::to_string(error)));
    if (error == Code::Read && url_.scheme == Url::Scheme::kHttp)
      why += ": if it serves TLS, its address begins with https://";
    return why;
  }

  const Url url_;
  const ClientOptions options_;
  const Resolver resolve_;
  const std::string server_;  // The URL without its path, for messages.
  const std::string prefix_;
  std::mutex mutex_;
  SystemClock clock_;
  std::string refusal_;                    // Why the body of the running call is not read on.
  std::atomic<bool> interrupted_ = false;  // The running call is to end.
  std::atomic<bool> cancelled_ = false;    // Set once; all calls then end.
  std::vector<std::string> addresses_{};   // Guarded by mutex_. Empty: the name is to be looked up.
  TlsWatch tls_;
  httplib::Client client_;
};

}  // namespace

Result<std::unique_ptr<ClientConnection>> MakeConnection(ConnectionPlan plan) {
  return std::unique_ptr<ClientConnection>(std::make_unique<HttplibConnection>(std::move(plan)));
}

}  // namespace zeus::http
