#include "zeus/export/push_gateway.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <string_view>
#include <utility>

#include "zeus/base/text.h"
#include "zeus/metrics/metric.h"
#include "zeus/http/url.h"

namespace zeus {
namespace {

using namespace std::chrono_literals;

constexpr Seconds kConnectTimeout = 2s;
constexpr Seconds kAnswerTimeout = 5s;
constexpr int kLowestFailure = 300;

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

PushGateway::PushGateway(std::unique_ptr<http::Client> client, std::string path,
                         const std::string& url)
    : client_(std::move(client)), path_(std::move(path)), notice_("push to " + url) {}

PushGateway::~PushGateway() = default;

Result<std::unique_ptr<PushGateway>> PushGateway::Create(const PushTarget& target) {
  const auto url = http::ParseUrl(target.url);
  if (!url.ok() || url.value().scheme == http::Url::Scheme::kUnix)
    return InvalidArgument(fmt::format("{} is not the URL of a push gateway: use http://host:port",
                                       Quote(target.url)));
  if (target.job.empty() || target.instance.empty())
    return InvalidArgument("a push needs the name of a job and of an instance that are not empty");
  ZEUS_TRY(auto client, http::Client::Create({.url = target.url,
                                              .keep_connection = true,
                                              .connect_timeout = kConnectTimeout,
                                              .answer_timeout = kAnswerTimeout}));
  return std::unique_ptr<PushGateway>(
      new PushGateway(std::move(client), PushPath(target), target.url));
}

Status PushGateway::Push(const std::string& text) {
  ZEUS_TRY(const http::Reply reply, client_->Send({.method = http::Method::kPut,
                                                   .path = path_,
                                                   .body = text,
                                                   .content_type = MetricSet::kContentType}));
  if (reply.status < kLowestFailure) return Ok();
  return Error{ErrorCode::kUnavailable,
               fmt::format("answered {}: {}", reply.status, Printable(Trim(reply.body)))};
}

}  // namespace zeus
