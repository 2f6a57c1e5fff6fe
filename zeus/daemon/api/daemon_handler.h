#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "zeus/daemon/access_tokens.h"
#include "zeus/daemon/api/call.h"
#include "zeus/daemon/api/daemon.h"
#include "zeus/daemon/api/node_metrics.h"
#include "zeus/daemon/api/reference_routes.h"
#include "zeus/daemon/peer_reader.h"
#include "zeus/http/access_control.h"
#include "zeus/http/access_log.h"
#include "zeus/http/message.h"
#include "zeus/web/application.h"

namespace zeus::daemon {

// The requests of the daemon: finds the route, knows who is at the other end of the connection, and
// lets it do what its grant allows. Several servers may share it. Thread-safe. The referenced
// objects must outlive it.
class DaemonHandler final : public http::RequestHandler {
 public:
  struct Options {
    std::set<ApiGroup> groups{ApiGroup::kGpuControl, ApiGroup::kGpuRead, ApiGroup::kCpuRead};
    AccessTokens* tokens = nullptr;  // Null: no token is accepted.
    bool certificates = false;       // Certificates of clients over TCP say who they are.
    http::AccessLog* log = nullptr;  // Null: requests are not logged.
    const web::Application* application = nullptr;  // Null: there are no pages.
    http::OriginGuard::Options origins{};           // The names of the address over TCP.
  };

  DaemonHandler(Daemon& daemon, NodeMetrics& metrics, Options options);

  http::Reception Connected(const http::AcceptedConnection& connection) override;
  void Disconnected(const http::ConnectionPeer& peer) override;
  http::Work Classify(const http::Request& request) const override;
  http::Admission Admit(const http::Request& header) override;
  http::Answer Handle(http::Request& request) override;
  http::Answer Refusal(int status, const std::string& why) override;
  void Finished(const http::FinishedRequest& request) override;

  const RouteTable& routes() const { return routes_; }
  const Clock& clock() const { return daemon_.clock(); }

 private:
  class Peer;
  // A caller with its grant, or the refusal.
  struct Admitted {
    std::shared_ptr<const Caller> caller{};
    std::shared_ptr<const Grant> grant{};
    std::optional<WallTime> token_expires{};
    std::optional<http::Answer> refusal{};
  };

  http::Answer Answer(http::Request& request);
  bool IsForApplication(const http::Request& request) const {
    return options_.application != nullptr && web::Application::Has(request);
  }
  Admitted AdmitTo(const NodeRoute& route, const http::Request& request);
  // Whether callers over TCP must say who they are.
  bool NeedsIdentity() const { return options_.tokens != nullptr || options_.certificates; }
  std::optional<http::Answer> RefusePage(const http::Request& request) const;
  Admitted AdmitAs(Caller bearer, std::optional<WallTime> expires) const;
  std::optional<Caller> CertifiedCaller(const http::Request& request,
                                        const Caller& connected) const;
  Admitted Identify(const NodeRoute& route, const http::Request& request);
  std::optional<http::Answer> Refuse(const NodeRoute& route, const http::Request& request,
                                     const Admitted& admitted);
  void AuditRefusal(const http::Request& request, const Caller& caller, const http::Answer& answer);
  void AddSystemRoutes();

  Daemon& daemon_;
  NodeMetrics& metrics_;
  const Options options_;
  const http::OriginGuard guard_;
  const PeerReader peers_{};
  std::atomic<std::uint64_t> connections_ = 0;
  RouteTable routes_{};
  std::string openapi_{};
};

}  // namespace zeus::daemon
