// Wraps httplib; no other file of this folder includes it.
#include "zeus/client/http_connection.h"

#include <fmt/format.h>
#include <httplib.h>
#include <sys/socket.h>

#include <exception>
#include <mutex>
#include <utility>

#include "zeus/base/file.h"
#include "zeus/base/text.h"
#include "zeus/client/tls_watch.h"

namespace zeus {
namespace {

constexpr std::string_view kUnix = "unix:";

// Returns "/run/zeus.sock" for "unix:/run/zeus.sock" and "unix:///run/zeus.sock".
std::string SocketPath(const std::string& url) {
  std::string path = url.substr(kUnix.size());
  return path.starts_with("//") ? path.substr(2) : path;
}

Error NoAddress(const std::string& url) {
  return {ErrorCode::kInvalidArgument,
          Quote(url) + " is no address of a server like http://host:8000 or unix:///run/zeus.sock"};
}

bool IsAddress(const std::string& url) {
  if (url.starts_with(kUnix)) return SocketPath(url).starts_with('/');
  const std::size_t scheme = url.find("://");
  if (scheme == std::string::npos) return false;
  const std::string name = url.substr(0, scheme);
  const std::string authority = url.substr(scheme + 3);
  return (name == "http" || name == "https") && !authority.empty() &&
         authority.find_first_of("/?#@ ") == std::string::npos;
}

// Returns "host" for "https://host:8000", and "::1" for "https://[::1]:8000".
std::string HostOf(const std::string& url) {
  const std::string authority = url.substr(url.find("://") + 3);
  if (authority.starts_with('[')) return authority.substr(1, authority.find(']') - 1);
  return authority.substr(0, authority.find(':'));
}

}  // namespace

class HttpConnection::Client {
 public:
  explicit Client(const Options& options)
      : url_(options.url), authorities_(options.authorities), client_(Target(options.url)) {
    if (url_.starts_with(kUnix)) client_.set_address_family(AF_UNIX);
    const auto limit = [](Seconds time) {
      return std::chrono::duration_cast<std::chrono::microseconds>(time);
    };
    client_.set_connection_timeout(limit(options.connect_timeout));
    client_.set_read_timeout(limit(options.answer_timeout));
    client_.set_write_timeout(limit(options.answer_timeout));
    client_.set_follow_location(false);  // A redirection would send the token elsewhere.
    client_.set_keep_alive(options.keep);
    client_.set_tcp_nodelay(true);
    if (!options.authorities.empty()) client_.set_ca_cert_path(options.authorities);
    if (SSL_CTX* const context = client_.ssl_context()) tls_.Attach(*context);
    httplib::Headers headers;
    if (!options.token.empty()) headers.emplace("Authorization", "Bearer " + options.token);
    // HTTP requires a Host header, also over a Unix socket.
    if (url_.starts_with(kUnix)) headers.emplace("Host", "localhost");
    client_.set_default_headers(std::move(headers));
  }

  Result<Answer> Ask(Method method, const std::string& path, const std::string& body) {
    const std::lock_guard lock(mutex_);
    const httplib::Result answer = Send(method, path, body);
    if (answer) return Answer{.status = answer->status, .body = answer->body};
    return Error{ErrorCode::kUnavailable, WhyNoAnswer(answer.error())};
  }

  void Cancel() { client_.stop(); }

 private:
  std::string WhyNoAnswer(httplib::Error error) const {
    using Code = httplib::Error;
    if (error == Code::SSLServerVerification)
      return fmt::format("{} is not trusted: {}", url_, tls_.Explain(HostOf(url_)));
    if (error == Code::SSLLoadingCerts)
      return fmt::format("no certificates to trust could be read for {}: {}", url_,
                         authorities_.empty()
                             ? std::string("this system has none (install ca-certificates)")
                             : Printable(authorities_) + " holds none in PEM format");
    if (error == Code::SSLConnection)
      return fmt::format(
          "{} does not speak TLS as we do: if it serves plain HTTP, its address begins with "
          "http://",
          url_);
    std::string why =
        fmt::format("no answer from {} ({})", url_, LowerCase(httplib::to_string(error)));
    if (error == Code::Read && url_.starts_with("http://"))
      why += ": if it serves TLS, its address begins with https://";
    return why;
  }

  static std::string Target(const std::string& url) {
    return url.starts_with(kUnix) ? SocketPath(url) : url;
  }

  httplib::Result Send(Method method, const std::string& path, const std::string& body) {
    switch (method) {
      case Method::kGet:
        return client_.Get(path);
      case Method::kPost:
        return client_.Post(path, body, "application/json");
      case Method::kDelete:
        return client_.Delete(path);
    }
    return client_.Get(path);
  }

  std::mutex mutex_;
  const std::string url_;
  const std::string authorities_;
  TlsWatch tls_;
  httplib::Client client_;
};

HttpConnection::HttpConnection(std::unique_ptr<Client> client) : client_(std::move(client)) {}
HttpConnection::~HttpConnection() = default;

Result<std::unique_ptr<HttpConnection>> HttpConnection::Create(const Options& options) {
  Options trimmed = options;
  if (trimmed.url.ends_with('/') && !trimmed.url.starts_with(kUnix)) trimmed.url.pop_back();
  if (!IsAddress(trimmed.url)) return NoAddress(options.url);
  if (!options.authorities.empty()) {
    constexpr std::size_t kLargestBundle = std::size_t{64} << 20;
    ZEUS_TRY(const std::string certificates, ReadSmallFile(options.authorities, kLargestBundle));
    if (certificates.find("-----BEGIN ") == std::string::npos)
      return Error{ErrorCode::kInvalidArgument, fmt::format("{} holds no certificate in PEM format",
                                                            Printable(options.authorities))};
  }
  try {
    return std::unique_ptr<HttpConnection>(new HttpConnection(std::make_unique<Client>(trimmed)));
  } catch (const std::exception&) {  // Malformed port.
    return NoAddress(options.url);
  }
}

Result<HttpConnection::Answer> HttpConnection::Ask(Method method, const std::string& path,
                                                   const std::string& body) {
  try {
    return client_->Ask(method, path, body);
  } catch (const std::exception& error) {
    return Error{ErrorCode::kUnavailable, fmt::format("ask the server: {}", error.what())};
  }
}

void HttpConnection::Cancel() { client_->Cancel(); }

std::string PercentEncoded(const std::string& text) {
  std::string encoded;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '.' || c == '~';
    if (plain) {
      encoded += c;
    } else {
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

}  // namespace zeus
