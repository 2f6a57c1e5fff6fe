#include "zeus/export/push_gateway.h"

#include <fmt/format.h>
#include <httplib.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <string_view>
#include <utility>

#include "zeus/base/text.h"
#include "zeus/metrics/metric.h"

namespace zeus {
namespace {

using namespace std::chrono_literals;

constexpr auto kConnectPatience = 2s;
constexpr auto kAnswerPatience = 5s;
constexpr int kLowestFailure = 300;

struct Url {
  std::string server;  // "http://host:9091"
  std::string prefix;  // "/push", or empty.
};

Result<Url> ParseUrl(const std::string& text) {
  const auto scheme_end = text.find("://");
  const std::string scheme = text.substr(0, scheme_end);
  if (scheme_end == std::string::npos || (scheme != "http" && scheme != "https")) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("{} is not the URL of a push gateway: use http://host:port", Quote(text))};
  }
  const auto path = std::min(text.find('/', scheme_end + 3), text.size());
  Url url{.server = text.substr(0, path), .prefix = text.substr(path)};
  while (url.prefix.ends_with('/')) url.prefix.pop_back();
  if (url.server.size() == scheme_end + 3)
    return Error{ErrorCode::kInvalidArgument, fmt::format("{} names no host", Quote(text))};
  return url;
}

std::string Base64Url(std::string_view bytes) {
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::string text;
  unsigned buffer = 0;
  int bits = 0;
  for (const char c : bytes) {
    buffer = (buffer << 8U) | static_cast<unsigned char>(c);
    for (bits += 8; bits >= 6; bits -= 6) text += kAlphabet[(buffer >> (bits - 6)) & 63U];
  }
  if (bits > 0) text += kAlphabet[(buffer << (6 - bits)) & 63U];
  while (text.size() % 4 != 0) text += '=';
  return text;
}

bool FitsAPath(std::string_view value) {
  return std::ranges::all_of(value, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-' || c == ':';
  });
}

std::string GroupingPart(std::string_view label, std::string_view value) {
  return FitsAPath(value) ? fmt::format("/{}/{}", label, value)
                          : fmt::format("/{}@base64/{}", label, Base64Url(value));
}

}  // namespace

std::string PushPath(const PushTarget& target) {
  return "/metrics" + GroupingPart("job", target.job) + GroupingPart("instance", target.instance);
}

class PushGateway::Connection {
 public:
  explicit Connection(const std::string& server) : client(server) {
    client.set_connection_timeout(kConnectPatience);
    client.set_read_timeout(kAnswerPatience);
    client.set_write_timeout(kAnswerPatience);
    client.set_keep_alive(true);
  }

  httplib::Client client;
};

PushGateway::PushGateway(std::unique_ptr<Connection> connection, std::string path,
                         const std::string& url)
    : connection_(std::move(connection)), path_(std::move(path)), notice_("push to " + url) {}

PushGateway::~PushGateway() = default;

Result<std::unique_ptr<PushGateway>> PushGateway::Create(const PushTarget& target) {
  ZEUS_TRY(const Url url, ParseUrl(target.url));
  if (target.job.empty() || target.instance.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 "a push needs the name of a job and of an instance that are not empty"};
  }
  auto connection = std::make_unique<Connection>(url.server);
  if (!connection->client.is_valid()) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} is not the URL of a push gateway: use http://host:port",
                             Quote(target.url))};
  }
  return std::unique_ptr<PushGateway>(
      new PushGateway(std::move(connection), url.prefix + PushPath(target), target.url));
}

Status PushGateway::Push(const std::string& text) {
  const auto answer = connection_->client.Put(path_, text, MetricSet::kContentType);
  if (!answer)
    return Error{ErrorCode::kUnavailable, "no answer: " + httplib::to_string(answer.error())};
  if (answer->status < kLowestFailure) return Ok();
  return Error{ErrorCode::kUnavailable,
               fmt::format("answered {}: {}", answer->status, Printable(Trim(answer->body)))};
}

}  // namespace zeus
