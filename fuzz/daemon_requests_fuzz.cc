// Requests of strangers and of administrators to every route of zeusd: targets, headers and bodies
// as they please, to a daemon with two simulated GPUs. It answers each with one of its statuses and
// well-formed JSON, no limit is ever below the bound, and when all leases are over every limit is
// back.
//
// An input has four lines: a byte that chooses the caller, one that chooses the route (or none),
// and one that chooses a body to begin with, then the target's parameters or the target, then
// Last-Event-ID, then Zeus-Hold, and the rest is spliced into the body. $U is a GPU, $L a lease.
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "zeus/base/clock.h"
#include "zeus/base/json.h"
#include "zeus/base/log.h"
#include "zeus/base/text.h"
#include "zeus/daemon/api/daemon.h"
#include "zeus/daemon/api/daemon_handler.h"
#include "zeus/daemon/api/node_metrics.h"
#include "zeus/device/sim/gpu_model.h"
#include "zeus/device/sim/simulated_gpu.h"

namespace {

using namespace zeus;
using namespace zeus::daemon;

constexpr Watts kLowest{120};
constexpr Watts kFound{250};
constexpr int kBetweenEnds = 200;  // So many requests, then all leases end.
constexpr const char* kRules = R"(
[defaults]
scopes = ["gpu-read", "gpu-control", "cpu-read", "job"]
leases = 4096
sets_per_second = { gpu_power_limit = 10000, graphics_clock = 10000, memory_clock = 10000, persistence = 10000 }
[bounds]
gpu_power_limit = { min_watts = 120 }
)";
constexpr std::array kBodies = {
    R"({"name":"a","holder":"ttl","ttl_seconds":60,"requests":[{"device":"$U","knob":"gpu_power_limit","exactly":{"watts":200}}]})",
    R"({"holder":"connection","class":"site","requests":[{"device":"$U","knob":"gpu_power_limit","at_most":{"watts":180}}]})",
    R"({"requests":[{"device":"$U","knob":"graphics_clock","range":{"lowest_hertz":9e8,"highest_hertz":1.2e9}}],"request_id":"r"})",
    R"({"holder":"standing","requests":[{"device":"$U","knob":"persistence","on":true}]})",
    R"({"id":"slurm:1","uid":1001,"devices":["$U"],"cgroup":"/slurm/uid_1001/job_1","pids":[],"labels":{"a":"b"}})",
    R"({"valid_seconds":60,"name":"b","requests":[{"device":"$U","knob":"gpu_power_limit","at_most":{"watts":150}}]})",
    R"({"pid":1})",
    R"({"seconds":1})",
    R"({"all":true,"device":"$U","subject":"uid:0"})",
    ""};

void Require(bool promise, std::string_view what) {
  if (promise) return;
  fmt::print(stderr, "broken: {}\n", what);
  std::abort();
}

void ReplaceAll(std::string& text, std::string_view what, std::string_view by) {
  for (std::size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
}

class World {
 public:
  World() {
    log::SetLevel(log::Level::kOff);
    std::array<char, 32> folder{"/tmp/zeusd-fuzz-XXXXXX"};
    Require(::mkdtemp(folder.data()) != nullptr, "a folder");
    Node node;
    for (unsigned index = 0; index < 2; ++index)
      node.gpus.push_back(std::make_unique<sim::SimulatedGpu>(
          clock_, *sim::FindGpuModel("V100").value(),
          sim::SimulatedGpu::Options{.seed = index + 1, .index = index}));
    gpus_ = {node.gpus[0].get(), node.gpus[1].get()};
    daemon_ = Daemon::Open(clock_, std::move(node), ParseConfiguration(kRules, "rules").value(),
                           {.knob_folder = folder.data(),
                            .state_file = fmt::format("{}/leases.json", folder.data()),
                            .standing_file = fmt::format("{}/standing.json", folder.data()),
                            .jobs_file = fmt::format("{}/jobs.json", folder.data())})
                  .value();
    Require(daemon_->Start().ok(), "the daemon starts");
    handler_ = std::make_unique<DaemonHandler>(*daemon_, metrics_, DaemonHandler::Options{});
    Require(::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets_.data()) == 0, "sockets");
    peers_[0] = handler_->Connected({.transport = http::AcceptedConnection::Transport::kTcp}).peer;
    peers_[1] = handler_
                    ->Connected({.transport = http::AcceptedConnection::Transport::kUnixSocket,
                                 .descriptor = sockets_[0]})
                    .peer;
  }

  void Serve(std::string_view input) {
    if (input.size() < 3) return;
    const auto chosen = [&](std::size_t i) { return static_cast<std::uint8_t>(input[i]); };
    http::Request request{.peer = peers_.at(chosen(0) % 2)};
    const auto& routes = handler_->routes().routes();
    const std::size_t route = chosen(1) % (routes.size() + 1);
    std::string body(kBodies.at(chosen(2) % kBodies.size()));
    input.remove_prefix(3);
    const auto line = [&] {
      const std::size_t end = std::min(input.find('\n'), input.size());
      std::string text(input.substr(0, end));
      input.remove_prefix(std::min(end + 1, input.size()));
      return text;
    };
    static constexpr std::array kMethods = {"GET", "POST", "PUT", "DELETE", "HEAD"};
    request.method = kMethods.at((chosen(0) >> 1U) % kMethods.size());
    request.target = line();
    if (route < routes.size()) {
      request.method = routes[route].method;
      std::string pattern(routes[route].pattern);
      ReplaceAll(pattern, "{uuid}", "$U");
      ReplaceAll(pattern, "{id}", pattern.starts_with("/v1/jobs") ? "slurm:1" : "$L");
      request.target = pattern + request.target;
    }
    request.last_event_id = line();
    request.zeus_hold = line();
    if (!input.empty()) {
      const std::size_t at = static_cast<std::uint8_t>(input[0]) % (body.size() + 1);
      body.replace(at, std::min(body.size() - at, input.size() / 2), input.substr(1));
    }
    request.body = std::move(body);
    for (std::string* text : {&request.target, &request.body}) {
      ReplaceAll(*text, "$U", gpus_.at(served_ % 2)->identity().uuid);
      ReplaceAll(*text, "$L", lease_);
    }
    Handle(request);
    if (++served_ % kBetweenEnds == 0) EndEverything();
  }

 private:
  void Handle(http::Request& request) {
    (void)handler_->Classify(request);
    const http::Admission admission = handler_->Admit(request);
    if (admission.refusal) return Check(*admission.refusal);
    http::Answer answer = handler_->Handle(request);
    if (!answer.pushed) return Check(answer);
    auto news = answer.pushed->Next();
    if (news.whole) Check(*news.whole);
    answer.pushed->ClientLeft();
  }

  void Check(const http::Answer& answer) {
    static const std::set<int> kStatuses = {200, 201, 204, 400, 401, 403, 404,
                                            405, 409, 410, 422, 429, 500, 503};
    Require(kStatuses.contains(answer.status), fmt::format("the status {}", answer.status));
    Require(answer.body.find("\"internal\"") == std::string::npos, answer.body);
    if (answer.content_type == "application/json" && !answer.body.empty()) {
      const auto json = ParseJson(answer.body);
      Require(json.ok(), answer.body);
      if (answer.status == 201 && json.value().contains("state"))
        lease_ = json.value().at("id").get<std::string>();
    }
    for (Gpu* gpu : gpus_)
      Require(gpu->CurrentPowerLimit().value().requested >= kLowest, "a limit below the bound");
  }

  void EndEverything() {
    for (Gpu* gpu : gpus_) (void)daemon_->desk().EndMaintenance(gpu->identity().uuid);
    daemon_->book().EndAll({}, EndReason::kRevoked);
    for (const JobBook::View& job : daemon_->jobs().List()) (void)daemon_->jobs().End(job.spec.id);
    for (Gpu* gpu : gpus_)
      for (const auto knob : {wire::LeaseKnob::kGpuPowerLimit, wire::LeaseKnob::kGraphicsClock,
                              wire::LeaseKnob::kPersistence}) {
        const wire::KnobKey key{.device = gpu->identity().uuid, .knob = knob};
        daemon_->desk().Wake(key);
        Require(daemon_->desk().WaitUntilSettled(key, Seconds(60)), "a knob settles");
      }
    for (Gpu* gpu : gpus_)
      Require(gpu->CurrentPowerLimit().value().requested == kFound, "a limit is not back");
  }

  SystemClock clock_;
  NodeMetrics metrics_;
  std::array<Gpu*, 2> gpus_{};
  std::unique_ptr<Daemon> daemon_;
  std::unique_ptr<DaemonHandler> handler_;
  std::array<int, 2> sockets_{};
  std::array<std::shared_ptr<const http::ConnectionPeer>, 2> peers_{};
  std::string lease_ = "lease_0";
  unsigned served_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static auto* const world = new World();
  world->Serve({reinterpret_cast<const char*>(data), size});
  return 0;
}
