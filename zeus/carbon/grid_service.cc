#include "zeus/carbon/grid_service.h"

#include <fmt/format.h>

#include <algorithm>

#include "zeus/base/text.h"
#include "zeus/http/url.h"

namespace zeus {
namespace {

constexpr double kMaxIntensity = 10'000;
constexpr std::size_t kLargestAnswer = std::size_t{1} << 20;

}  // namespace

GridService::Answer<std::string> BodyOf(const Result<http::Reply>& reply,
                                        const std::string& place) {
  using Failure = GridService::Failure;
  if (!reply.ok()) return Failure{reply.error().message, kGridRetry};
  const int status = reply.value().status;
  switch (status) {
    case 200:
      return reply.value().body;
    case 401:
    case 403:
      return Failure{fmt::format("the token was refused (status {}): check it", status),
                     kGridLongPause};
    case 404:
      return Failure{fmt::format("{} is not known there (status 404)", place), kGridLongPause};
    case 429:
      return Failure{
          "too many requests (status 429)",
          std::clamp(reply.value().retry_after.value_or(kGridRefresh), kGridRetry, kGridLongPause)};
    default:
      return Failure{fmt::format("the server failed (status {})", status), kGridRetry};
  }
}

bool IsIntensity(double value) { return value >= 0 && value <= kMaxIntensity; }

bool IsOneWord(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~'; });
}

Result<std::unique_ptr<http::Client>> CreateGridClient(const std::string& base_url,
                                                       Seconds timeout) {
  ZEUS_TRY(const http::Url url, http::ParseUrl(base_url));
  if (url.scheme == http::Url::Scheme::kUnix || !url.path.empty())
    return InvalidArgument(Quote(base_url) + " is no address like https://api.example.org");
  if (url.scheme == http::Url::Scheme::kHttp && !http::IsLoopback(url.host))
    return InvalidArgument(Quote(base_url) + " would send the token in the clear: use https");
  return http::Client::Create({.url = base_url,
                               .connect_timeout = timeout,
                               .answer_timeout = timeout,
                               .largest_body = kLargestAnswer});
}

}  // namespace zeus
