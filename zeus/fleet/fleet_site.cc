#include "zeus/fleet/fleet_site.h"

#include <string_view>
#include <utility>

#include "zeus/base/version.h"

namespace zeus::fleet {
namespace {

constexpr std::string_view kFleet = "/v1/fleet";
constexpr std::string_view kFleetWithPast = "/v1/fleet?past=true";
constexpr std::string_view kHealthy = "/-/healthy";

bool IsOurs(const std::string& target) {
  return target == kFleet || target == kFleetWithPast || target == kHealthy;
}

}  // namespace

FleetSite::FleetSite(const FleetTable& table, http::OriginGuard::Options origins)
    : table_(table),
      guard_(origins),
      application_({.program = "zeus fleet",
                    .version = Version(),
                    .features = {"fleet"},
                    .origins = std::move(origins)}) {}

http::Work FleetSite::Classify(const http::Request& request) const {
  return web::Application::Has(request) || request.target == kHealthy ? http::Work::kImmediate
                                                                      : http::Work::kRead;
}

http::Admission FleetSite::Admit(const http::Request& header) {
  if (web::Application::Has(header)) return {};
  if (!IsOurs(header.target))
    return {.refusal = http::RefusalAnswer(
                404, "not_found", "there is nothing here: see /, /v1/fleet and /-/healthy")};
  if (header.method != "GET" && header.method != "HEAD")
    return {.refusal = http::RefusalAnswer(405, "bad_request", "only GET is known here")};
  return {.vital = header.target == kHealthy};
}

http::Answer FleetSite::Handle(http::Request& request) {
  if (web::Application::Has(request)) return application_.Answer(request);
  if (const auto why = guard_.Refuse(request, false))
    return http::RefusalAnswer(403, "permission_denied", *why);
  if (http::Admission refused = Admit(request); refused.refusal) return *std::move(refused.refusal);
  if (request.target == kHealthy)
    return {.body = "zeus is healthy\n", .content_type = "text/plain"};
  const auto past =
      request.target == kFleetWithPast ? FleetTable::Past::kIncluded : FleetTable::Past::kOmitted;
  return {.body = table_.Document(past)};
}

http::Answer FleetSite::Refusal(int status, const std::string& why) {
  return http::RefusalAnswer(status, status == 503 ? "unavailable" : "bad_request", why);
}

}  // namespace zeus::fleet
