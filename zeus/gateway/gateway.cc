#include "zeus/gateway/gateway.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "zeus/base/json.h"
#include "zeus/base/log.h"
#include "zeus/base/text.h"
#include "zeus/gateway/model_router.h"
#include "zeus/gateway/own_routes.h"
#include "zeus/wire/llm/request.h"

namespace zeus::gateway {
namespace {

constexpr Seconds kModelsPeriod{10};  // How often upstreams are asked for their models.
constexpr Seconds kGaugePeriod{1};    // How often engines are asked for their running requests.
constexpr Seconds kGaugeRetry{60};    // The same for engines without such metrics.
constexpr std::string_view kRequestHeader = "x-zeus-request";

std::vector<UpstreamGpus> GpusOf(const std::vector<GatewayUpstream>& upstreams) {
  std::vector<UpstreamGpus> gpus;
  for (const GatewayUpstream& upstream : upstreams)
    gpus.push_back({.name = upstream.url.server(),
                    .devices = upstream.devices,
                    .absent_reason = upstream.absent_reason});
  return gpus;
}

std::vector<ModelRouter::Upstream> ModelsOf(const std::vector<GatewayUpstream>& upstreams) {
  std::vector<ModelRouter::Upstream> models;
  for (const GatewayUpstream& upstream : upstreams)
    models.push_back({.name = upstream.url.server(), .models = upstream.models});
  return models;
}

// The path of an absolute target, as a client of a forward proxy sends it.
void MakeOriginForm(std::string& target) {
  if (!target.starts_with("http://") && !target.starts_with("https://")) return;
  const std::size_t path = target.find('/', target.find("//") + 2);
  target = path == std::string::npos ? "/" : target.substr(path);
}

// "m" of /v1/models/m and of /v1/models/m/...; empty otherwise.
std::string_view ModelInPath(std::string_view path) {
  constexpr std::string_view kModels = "/v1/models/";
  const std::size_t at = path.find(kModels);
  return at == std::string_view::npos ? std::string_view() : path.substr(at + kModels.size());
}

bool IsJson(std::string_view content_type) {
  return content_type.empty() || LowerCase(content_type).find("json") != std::string::npos;
}

}  // namespace

class Gateway::Handler final : public ProxyHandler {
 public:
  Handler(GatewayOptions options, EnergyMonitor* monitor, const Clock& clock)
      : options_(std::move(options)),
        clock_(clock),
        router_(ModelsOf(options_.upstreams)),
        metering_(options_.metering, monitor, GpusOf(options_.upstreams), clock),
        routes_({.metering = metering_,
                 .counts = counts_,
                 .machine_metrics = options_.machine_metrics,
                 .governor = options_.governor,
                 .clock = clock}),
        polls_(options_.upstreams.size()) {}

  ProxyCounts& counts() { return counts_; }
  // After the proxy's thread has ended.
  void CloseRecords() { metering_.CloseAll(); }

  bool WantsBody(const RequestHead& head) override {
    if (PathOfTarget(head.target).starts_with("/zeus/")) return true;
    // Clients like curl call JSON a form unless they are told otherwise.
    const std::string type = LowerCase(head.fields.Get("content-type"));
    return IsJson(type) || type.starts_with("application/x-www-form-urlencoded") ||
           type.starts_with("text/plain");
  }

  Decision Decide(ProxyRequest& request) override {
    MakeOriginForm(request.head.target);
    const std::string_view path = PathOfTarget(request.head.target);
    if (path == "/zeus/live" && request.head.method == "GET") return Live{};
    if (path.starts_with("/zeus/")) return routes_.Answer(request);
    const bool models_wanted = request.head.method == "GET" && path == "/v1/models";
    if (models_wanted && options_.upstreams.size() > 1) return ForwardToAll{};
    // A client that could choose the identifier could pass for another request.
    request.head.fields.Remove(kRequestHeader);
    try {
      return Route(request);
    } catch (const std::exception& error) {
      log::Warning("a request passes without being metered: {}", Printable(error.what()));
      return Forward{};
    }
  }

  http::Answer Combine(const ProxyRequest& /*request*/,
                       const std::vector<Result<Fetched>>& answers) override {
    for (std::size_t i = 0; i < answers.size(); ++i)
      if (answers[i].ok()) LearnModels(i, answers[i].value());
    const auto list = CombineModelLists(answers);
    if (!list.ok()) return ErrorAnswer(502, "upstream_error", list.error().message);
    return {.body = list.value()};
  }

  std::string LiveText() override { return "data: " + metering_.LiveJson().dump() + "\n\n"; }

  void Tick(Fetcher& fetcher) override {
    try {
      metering_.Step();
    } catch (const std::exception& error) {
      log::Warning("the sensors' energy could not be divided: {}", Printable(error.what()));
    }
    const TimePoint now = clock_.Now();
    for (std::size_t i = 0; i < polls_.size(); ++i) {
      if (now >= polls_[i].models_due && !polls_[i].models_asked) AskModels(fetcher, i, now);
      if (now >= polls_[i].gauge_due && !polls_[i].gauge_asked) AskGauge(fetcher, i, now);
    }
  }

 private:
  // When an upstream is asked next.
  struct Poll {
    TimePoint models_due{};
    TimePoint gauge_due{};
    bool models_asked = false;
    bool gauge_asked = false;
  };

  Decision Route(ProxyRequest& request) {
    RequestHead& head = request.head;
    auto facts = llm::InspectRequest(head.method, head.target, head.fields.Get("content-type"),
                                     request.body);
    std::string model = facts ? facts->model : std::string(ModelInPath(PathOfTarget(head.target)));
    if (!facts && model.empty() && options_.upstreams.size() > 1) model = ModelInBody(request.body);
    const auto upstream = router_.Choose(model);
    if (!upstream.ok()) return ErrorAnswer(404, "invalid_request_error", upstream.error().message);
    Forward forward{.upstream = upstream.value()};
    if (!facts) return forward;
    Metering::Begin begin{.upstream = upstream.value(),
                          .key = Key(head.fields),
                          .client_id = Printable(head.fields.Get("x-request-id"))};
    if (facts->model.empty()) {  // A server with one model needs no name.
      const auto known = router_.Models(upstream.value());
      if (known.size() == 1) facts->model = known.front();
    }
    if (metering_.stores_text()) begin.body = request.body;
    if (options_.ask_usage)
      if (auto asking = llm::WithUsageAsked(*facts, request.body)) {
        request.body = *std::move(asking);
        begin.usage_asked = true;
      }
    begin.facts = *std::move(facts);
    // Tokens cannot be seen in a compressed response.
    head.fields.Set("Accept-Encoding", "identity");
    auto started = metering_.Start(std::move(begin));
    head.fields.Set(kRequestHeader, started.id);
    forward.exchange = std::move(started.exchange);
    return forward;
  }

  // The label by which a request is charged. Keys themselves are never kept.
  std::string Key(const HeaderFields& fields) const {
    if (!options_.key_header.empty()) return Printable(fields.Get(options_.key_header));
    for (const char* name : {"authorization", "x-api-key", "api-key"})
      if (const std::string* value = fields.Find(name)) return KeyLabel(*value);
    return {};
  }

  void AskModels(Fetcher& fetcher, std::size_t upstream, TimePoint now) {
    polls_[upstream].models_due = now + kModelsPeriod;
    polls_[upstream].models_asked = true;
    fetcher.Fetch(upstream, "/v1/models", {}, [this, upstream](const Result<Fetched>& answer) {
      polls_[upstream].models_asked = false;
      if (answer.ok()) LearnModels(upstream, answer.value());
    });
  }

  void LearnModels(std::size_t upstream, const Fetched& answer) {
    if (answer.status != 200) return;
    if (auto models = ParseModelList(answer.body)) router_.SetListed(upstream, *std::move(models));
  }

  void AskGauge(Fetcher& fetcher, std::size_t upstream, TimePoint now) {
    polls_[upstream].gauge_due = now + kGaugeRetry;
    if (!metering_.energy().GroupIndex(upstream)) return;
    polls_[upstream].gauge_asked = true;
    fetcher.Fetch(upstream, "/metrics", {}, [this, upstream](const Result<Fetched>& answer) {
      polls_[upstream].gauge_asked = false;
      if (!answer.ok() || answer.value().status != 200) return;
      const auto running = RunningRequestsInMetrics(answer.value().body);
      if (!running) return;
      metering_.RunningRequestsSeen(upstream, *running);
      polls_[upstream].gauge_due = clock_.Now() + kGaugePeriod;
    });
  }

  const GatewayOptions options_;
  const Clock& clock_;
  ProxyCounts counts_{};
  ModelRouter router_;
  Metering metering_;
  OwnRoutes routes_;
  std::vector<Poll> polls_;
};

Gateway::Gateway(std::unique_ptr<Handler> handler, std::unique_ptr<Proxy> proxy)
    : handler_(std::move(handler)), proxy_(std::move(proxy)) {}

Gateway::~Gateway() {
  proxy_.reset();
  handler_->CloseRecords();
}

Result<std::unique_ptr<Gateway>> Gateway::Start(GatewayOptions options, EnergyMonitor* monitor,
                                                const Clock& clock) {
  ProxyOptions proxy_options{.listen = options.listen,
                             .tls = options.tls,
                             .authorities = options.authorities,
                             .limits = options.limits};
  for (const GatewayUpstream& upstream : options.upstreams)
    proxy_options.upstreams.push_back(upstream.url);
  options.metering.observer = options.governor;
  auto handler = std::make_unique<Handler>(std::move(options), monitor, clock);
  ZEUS_TRY(auto proxy, Proxy::Start(proxy_options, *handler, handler->counts(), clock));
  return std::unique_ptr<Gateway>(new Gateway(std::move(handler), std::move(proxy)));
}

const std::string& Gateway::url() const { return proxy_->url(); }

void Gateway::BeginShutdown() { proxy_->BeginShutdown(); }

bool Gateway::WaitForShutdown(Seconds timeout) { return proxy_->WaitForShutdown(timeout); }

}  // namespace zeus::gateway
