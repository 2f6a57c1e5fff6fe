// The only file that knows httplib.
#include "zeus/carbon/http_client.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <httplib.h>
#include <netdb.h>

#include <atomic>
#include <exception>
#include <utility>

#include "zeus/base/text.h"

namespace zeus {
namespace {

constexpr std::size_t kMaxAnswer = std::size_t{1024} * 1024;

struct Url {
  std::string scheme_host_port;
  std::string host;
};

Result<Url> ParseUrl(const std::string& text) {
  const Error wrong{ErrorCode::kInvalidArgument,
                    Quote(text) + " is no address like https://api.example.org"};
  const auto colon = text.find("://");
  if (colon == std::string::npos) return wrong;
  const std::string scheme = text.substr(0, colon);
  std::string authority = text.substr(colon + 3);
  if (authority.ends_with('/')) authority.pop_back();
  if ((scheme != "https" && scheme != "http") || authority.empty() ||
      authority.find_first_of("/?#@ ") != std::string::npos)
    return wrong;
  const bool bracketed = authority.front() == '[';
  const auto end = bracketed ? authority.find(']') : authority.find(':');
  const std::string host = bracketed ? authority.substr(1, end - 1) : authority.substr(0, end);
  const bool local = host == "localhost" || host == "::1" || host.starts_with("127.");
  if (scheme == "http" && !local) {
    return Error{ErrorCode::kInvalidArgument,
                 Quote(text) + " would send the token in the clear: use https"};
  }
  return Url{.scheme_host_port = scheme + "://" + authority, .host = host};
}

// A look-up that glibc makes on a thread of its own.
struct Lookup {
  explicit Lookup(std::string name) : host(std::move(name)) { request.ar_name = host.c_str(); }
  ~Lookup() {
    if (request.ar_result != nullptr) ::freeaddrinfo(request.ar_result);
  }
  Lookup(const Lookup&) = delete;
  Lookup& operator=(const Lookup&) = delete;

  std::string host;
  gaicb request{};
};

bool IsAddress(const std::string& host) {
  in6_addr ignored{};  // Large enough for either kind.
  return ::inet_pton(AF_INET, host.c_str(), &ignored) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), &ignored) == 1;
}

// getaddrinfo() waits for name servers longer than a report can; this does not.
Result<std::string> Resolve(const std::string& host, Seconds timeout,
                            const std::atomic<bool>& cancelled) {
  if (IsAddress(host)) return host;
  auto lookup = std::make_unique<Lookup>(host);
  gaicb* const list[] = {&lookup->request};
  if (::getaddrinfo_a(GAI_NOWAIT, const_cast<gaicb**>(list), 1, nullptr) != 0)
    return Error{ErrorCode::kUnavailable, "cannot look up " + Quote(host)};
  constexpr Seconds kSlice{0.05};
  const timespec slice{.tv_sec = 0, .tv_nsec = 50'000'000};
  for (Seconds waited{0}; waited < timeout && !cancelled; waited += kSlice) {
    if (::gai_error(&lookup->request) != EAI_INPROGRESS) break;
    ::gai_suspend(list, 1, &slice);
  }
  const int outcome = ::gai_error(&lookup->request);
  if (outcome == EAI_INPROGRESS) {
    // What cannot be cancelled is still written to: it stays, some hundred bytes, for ever.
    if (::gai_cancel(&lookup->request) == EAI_NOTCANCELED) static_cast<void>(lookup.release());
    return Error{ErrorCode::kUnavailable, "looking up " + Quote(host) + " took too long"};
  }
  if (outcome != 0) {
    return Error{ErrorCode::kUnavailable,
                 fmt::format("cannot look up {}: {}", Quote(host), ::gai_strerror(outcome))};
  }
  char address[NI_MAXHOST];
  const addrinfo* first = lookup->request.ar_result;
  if (::getnameinfo(first->ai_addr, first->ai_addrlen, address, sizeof address, nullptr, 0,
                    NI_NUMERICHOST) != 0)
    return Error{ErrorCode::kUnavailable, "no address for " + Quote(host)};
  return std::string(address);
}

}  // namespace

class HttpClient::Connection {
 public:
  Connection(Url url, Seconds timeout)
      : url_(std::move(url)), timeout_(timeout), client_(url_.scheme_host_port) {
    const auto limit = std::chrono::duration_cast<std::chrono::microseconds>(timeout);
    client_.set_connection_timeout(limit);
    client_.set_read_timeout(limit);
    client_.set_write_timeout(limit);
    client_.set_follow_location(false);
    client_.set_keep_alive(false);
  }

  Result<HttpResponse> Get(const std::string& path, const Header& header) {
    ZEUS_TRY(const std::string address, Resolve(url_.host, timeout_, cancelled_));
    client_.set_hostname_addr_map({{url_.host, address}});
    std::string body;
    const auto take = [&](const char* data, std::size_t size) {
      body.append(data, size);
      return body.size() <= kMaxAnswer && !cancelled_;
    };
    const auto answer = client_.Get(path, httplib::Headers{{header.name, header.value}}, take);
    if (!answer) {
      return Error{ErrorCode::kUnavailable,
                   fmt::format("no answer from {} ({})", url_.scheme_host_port,
                               LowerCase(httplib::to_string(answer.error())))};
    }
    HttpResponse response{.status = answer->status, .body = std::move(body), .retry_after = {}};
    const auto seconds = ParseUnsigned(answer->get_header_value("Retry-After"));
    if (seconds.ok()) response.retry_after = Seconds(static_cast<double>(seconds.value()));
    return response;
  }

  void Cancel() {
    cancelled_ = true;
    client_.stop();
  }

 private:
  const Url url_;
  const Seconds timeout_;
  httplib::Client client_;
  std::atomic<bool> cancelled_ = false;
};

HttpClient::HttpClient(std::unique_ptr<Connection> connection)
    : connection_(std::move(connection)) {}
HttpClient::~HttpClient() = default;

Result<std::unique_ptr<HttpClient>> HttpClient::Create(const std::string& base_url,
                                                       Seconds timeout) {
  ZEUS_TRY(Url url, ParseUrl(base_url));
  try {
    auto connection = std::make_unique<Connection>(std::move(url), timeout);
    return std::unique_ptr<HttpClient>(new HttpClient(std::move(connection)));
  } catch (const std::exception& error) {
    return Error{ErrorCode::kInvalidArgument, Quote(base_url) + ": " + Printable(error.what())};
  }
}

Result<HttpResponse> HttpClient::Get(const std::string& path, const Header& header) {
  try {
    return connection_->Get(path, header);
  } catch (const std::exception& error) {
    return Error{ErrorCode::kUnavailable, Printable(error.what())};
  }
}

void HttpClient::Cancel() { connection_->Cancel(); }

}  // namespace zeus
