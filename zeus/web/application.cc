#include "zeus/web/application.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "zeus/base/json.h"
#include "zeus/base/text.h"
#include "zeus/web/application_files.h"

namespace zeus::web {
namespace {

constexpr std::string_view kPage = "app.html";
constexpr std::string_view kDescription = "app.json";
constexpr const char* kRoute = "application";  // The route of all of them in metrics.

// The page loads what its own server sends and nothing else, runs no script within the page, and
// cannot be put into a frame.
constexpr const char* kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

constexpr std::string_view kWithoutPage =
    "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Zeus</title>"
    "<p>This Zeus was built without node, so it has no pages; its requests work all the same.";

struct Resource {
  std::string_view path;
  std::string_view name;
  const char* type;
};
constexpr std::array kResources = {Resource{"/", kPage, "text/html; charset=utf-8"},
                                   Resource{"/app.js", "app.js", "text/javascript; charset=utf-8"},
                                   Resource{"/app.css", "app.css", "text/css; charset=utf-8"},
                                   Resource{"/app.json", kDescription, "application/json"}};

const Resource* Find(std::string_view target) {
  const std::string_view path = target.substr(0, target.find('?'));
  const auto* found = std::ranges::find(kResources, path, &Resource::path);
  return found == kResources.end() ? nullptr : found;
}

std::string_view TokenUseName(TokenUse use) {
  switch (use) {
    case TokenUse::kNone:
      return "none";
    case TokenUse::kOptional:
      return "optional";
    case TokenUse::kRequired:
      break;
  }
  return "required";
}

// "gzip, br;q=0.5" accepts gzip, "gzip;q=0" does not.
bool AcceptsGzip(const std::string& accept_encoding) {
  for (const std::string_view part : SplitAtCommas(accept_encoding)) {
    const auto semicolon = part.find(';');
    const std::string name = LowerCase(Trim(part.substr(0, semicolon)));
    if (name != "gzip" && name != "*") continue;
    if (semicolon == std::string_view::npos) return true;
    const std::string_view weight = Trim(part.substr(semicolon + 1));
    return weight.find_first_of("123456789") != std::string_view::npos;
  }
  return false;
}

bool HasTag(const std::string& if_none_match, const std::string& tag) {
  for (const std::string_view one : SplitAtCommas(if_none_match)) {
    std::string_view text = Trim(one);
    if (text.starts_with("W/")) text.remove_prefix(2);  // The comparison is a weak one.
    if (text == tag || text == "*") return true;
  }
  return false;
}

void AddSafetyHeaders(http::Answer& answer) {
  answer.headers.emplace_back("Content-Security-Policy", kPolicy);
  answer.headers.emplace_back("X-Content-Type-Options", "nosniff");
  answer.headers.emplace_back("Referrer-Policy", "no-referrer");
  answer.headers.emplace_back("Cross-Origin-Resource-Policy", "same-origin");
  answer.headers.emplace_back("Cross-Origin-Opener-Policy", "same-origin");
}

}  // namespace

Application::Application(ApplicationOptions options)
    : guard_(std::move(options.origins)),
      description_(JsonText(Json{{"program", options.program},
                                 {"version", options.version},
                                 {"features", options.features},
                                 {"token", TokenUseName(options.token)}})) {}

bool Application::Has(const http::Request& request) {
  return (request.method == "GET" || request.method == "HEAD") && Find(request.target) != nullptr;
}

http::Answer Application::FileAnswer(std::string_view name, const http::Request& request) const {
  const auto& files = ApplicationFiles();
  const auto file = std::ranges::find(files, name, &ApplicationFile::name);
  if (file == files.end())
    return {.status = name == kPage ? 200 : 404, .body = std::string(kWithoutPage)};
  http::Answer answer;
  // Each form has a tag of its own, as caches between want it.
  const bool gzip = AcceptsGzip(request.accept_encoding);
  const std::string tag = fmt::format("\"{}{}\"", file->tag, gzip ? "-gzip" : "");
  answer.headers.emplace_back("ETag", tag);
  answer.headers.emplace_back("Vary", "Accept-Encoding");
  // Browsers ask each time, so that a new version of the program brings its new page at once.
  answer.headers.emplace_back("Cache-Control", "no-cache");
  if (HasTag(request.if_none_match, tag)) {
    answer.status = 304;
    return answer;
  }
  if (gzip) answer.headers.emplace_back("Content-Encoding", "gzip");
  answer.body = gzip ? file->gzip : file->plain;
  return answer;
}

http::Answer Application::Answer(const http::Request& request) const {
  const Resource* resource = Find(request.target);
  if (resource == nullptr || !Has(request)) {
    http::Answer answer = http::RefusalAnswer(404, "not_found", "the application has no such file");
    answer.route = kRoute;
    return answer;
  }
  http::Answer answer;
  if (const auto why = guard_.Refuse(request, false)) {
    answer = http::RefusalAnswer(403, "permission_denied", *why);
  } else if (resource->name == kDescription) {
    answer.body = description_;
    answer.headers.emplace_back("Cache-Control", "no-store");
  } else {
    answer = FileAnswer(resource->name, request);
    answer.content_type = ApplicationFiles().empty() ? "text/html; charset=utf-8" : resource->type;
  }
  AddSafetyHeaders(answer);
  answer.route = kRoute;
  return answer;
}

}  // namespace zeus::web
