// This file adds to the protocol what callers need: a bound on name look-ups, and a check of its
// options.
#include "zeus/http/client.h"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <utility>

#include "zeus/base/detached_call.h"
#include "zeus/base/file.h"
#include "zeus/base/text.h"
#include "zeus/http/client_connection.h"
#include "zeus/http/url.h"

namespace zeus::http {
namespace {

constexpr std::size_t kLargestBundle = std::size_t{64} << 20;

using Addresses = Result<std::vector<std::string>>;

// Returns the addresses of a host in the system's order of preference. Blocks for as long as the
// resolver does.
Addresses LookUp(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int outcome = ::getaddrinfo(host.c_str(), nullptr, &hints, &list);
  if (outcome != 0)
    return Error{ErrorCode::kUnavailable,
                 fmt::format("cannot look up {}: {}", Quote(host), ::gai_strerror(outcome))};
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, &::freeaddrinfo);
  std::vector<std::string> addresses;
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    char text[NI_MAXHOST];
    if (::getnameinfo(entry->ai_addr, entry->ai_addrlen, text, sizeof text, nullptr, 0,
                      NI_NUMERICHOST) == 0)
      addresses.emplace_back(text);
  }
  if (addresses.empty())
    return Error{ErrorCode::kUnavailable, "there is no address for " + Quote(host)};
  return addresses;
}

// As LookUp(), but gives up after `timeout` or once cancelled() returns true: getaddrinfo() itself
// waits for silent name servers much longer than callers can.
Addresses LookUpWithin(const std::string& host, Seconds timeout,
                       const std::function<bool()>& cancelled) {
  DetachedCall<Addresses> call([host] { return LookUp(host); });
  constexpr Seconds kSlice{0.05};
  for (Seconds waited{0}; waited < timeout && !cancelled(); waited += kSlice)
    if (auto addresses = call.TakeWithin(std::min(kSlice, timeout - waited)))
      return *std::move(addresses);
  return Error{ErrorCode::kUnavailable, "looking up " + Quote(host) + " took too long"};
}

Status CheckAuthorities(const std::string& file) {
  if (file.empty()) return Ok();
  ZEUS_TRY(const std::string certificates, ReadSmallFile(file, kLargestBundle));
  if (certificates.find("-----BEGIN ") == std::string::npos)
    return InvalidArgument(fmt::format("{} holds no certificate in PEM format", Printable(file)));
  return Ok();
}

}  // namespace

// Holds what MakeConnection() made.
class Client::Connection {
 public:
  explicit Connection(std::unique_ptr<ClientConnection> made) : made_(std::move(made)) {}
  ClientConnection* operator->() const { return made_.get(); }

 private:
  const std::unique_ptr<ClientConnection> made_;
};

Client::Client(std::unique_ptr<Connection> connection) : connection_(std::move(connection)) {}
Client::~Client() = default;

Result<std::unique_ptr<Client>> Client::Create(const ClientOptions& options) {
  ZEUS_TRY(Url url, ParseUrl(options.url));
  ZEUS_RETURN_IF_ERROR(CheckAuthorities(options.authorities));
  try {
    ZEUS_TRY(std::unique_ptr<ClientConnection> connection,
             MakeConnection({std::move(url), options, LookUpWithin}));
    return std::unique_ptr<Client>(new Client(std::make_unique<Connection>(std::move(connection))));
  } catch (const std::exception& error) {
    return InvalidArgument(Quote(options.url) + ": " + Printable(error.what()));
  }
}

Result<Reply> Client::Send(const Call& call) { return Stream(call, {}); }

Result<Reply> Client::Stream(const Call& call, const Piece& piece) {
  try {
    return (*connection_)->Send(call, piece);
  } catch (const std::exception& error) {
    return Error{ErrorCode::kUnavailable, fmt::format("ask the server: {}", error.what())};
  }
}

void Client::Interrupt() { (*connection_)->Interrupt(); }
void Client::Cancel() { (*connection_)->Cancel(); }

}  // namespace zeus::http
