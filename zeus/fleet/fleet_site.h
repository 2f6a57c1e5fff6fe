#pragma once

#include <functional>
#include <string>

#include "zeus/fleet/fleet_table.h"
#include "zeus/http/access_control.h"
#include "zeus/http/message.h"
#include "zeus/web/application.h"

namespace zeus::fleet {

// The requests of `zeus fleet`: the page, GET /v1/fleet and /-/healthy. Everything may be read by
// everybody who reaches the address, and nothing changed. Thread-safe; the table must outlive it.
class FleetSite final : public http::RequestHandler {
 public:
  FleetSite(const FleetTable& table, http::OriginGuard::Options origins);

  http::Work Classify(const http::Request& request) const override;
  http::Admission Admit(const http::Request& header) override;
  http::Answer Handle(http::Request& request) override;
  http::Answer Refusal(int status, const std::string& why) override;
  void Finished(const http::FinishedRequest& /*request*/) override {}

 private:
  const FleetTable& table_;
  const http::OriginGuard guard_;
  const web::Application application_;
};

}  // namespace zeus::fleet
