#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/ticker.h"
#include "zeus/http/access_control.h"
#include "zeus/http/message.h"
#include "zeus/http/router.h"
#include "zeus/live/event_stream.h"
#include "zeus/live/node_devices.h"
#include "zeus/live/node_history.h"
#include "zeus/monitor/node_monitor.h"
#include "zeus/web/application.h"

namespace zeus::live {

// The requests of a program that only watches its node, `zeus monitor --serve`: metrics, the page,
// and those requests of zeusd that the page reads. Everything may be read by everybody who reaches
// the address, and nothing changed. Thread-safe; the recorder must outlive it, and it must outlive
// its server.
class NodeSite final : public http::RequestHandler {
 public:
  struct Options {
    std::function<std::string()> metrics{};  // The text of GET /metrics.
    // Emissions and cost in lines for people; null: not wanted.
    std::function<std::vector<std::string>()> costs{};
    http::OriginGuard::Options origins{};
  };

  NodeSite(NodeMonitor& recorder, Options options);
  ~NodeSite() override;

  http::Work Classify(const http::Request& request) const override;
  http::Admission Admit(const http::Request& header) override;
  http::Answer Handle(http::Request& request) override;
  http::Answer Refusal(int status, const std::string& why) override;
  void Finished(const http::FinishedRequest& request) override;

 private:
  void AddRoutes();
  http::Answer Answer(http::Request& request);
  Result<std::vector<const NodeDevice*>> Chosen(const http::Request& request) const;
  Result<http::Answer> GetNode() const;
  Result<http::Answer> GetEnergy(const http::Request& request) const;
  Result<http::Answer> GetHistory(const http::Request& request);
  Result<http::Answer> GetStream(const http::Request& request);
  std::string ReadingsOf(const std::set<std::string>& devices) const;
  TimePoint Step();

  NodeMonitor& recorder_;
  const Options options_;
  const http::OriginGuard guard_;
  const web::Application application_;
  const NodeDevices devices_;
  NodeHistory history_;
  EventStreams events_;
  http::Router router_{};
  std::unique_ptr<Ticker> ticker_{};  // Events, and the history.
};

}  // namespace zeus::live
