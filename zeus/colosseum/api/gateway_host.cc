#include "zeus/colosseum/api/gateway_host.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "zeus/base/json.h"
#include "zeus/base/log.h"
#include "zeus/base/text.h"
#include "zeus/colosseum/api/answer_stream.h"
#include "zeus/http/url.h"

namespace zeus::colosseum {
namespace {

constexpr Seconds kModelsPeriod{2};
constexpr Seconds kEnergyPeriod{0.05};
constexpr Seconds kPowerPause{1};  // Before a feed that broke off is followed again.
constexpr std::size_t kMostPowerSamples = 600;
constexpr std::size_t kLongestPowerLine = std::size_t{1} << 20;

std::string ChatBody(const Question& question) {
  return JsonText({{"model", question.model},
                   {"messages", {{{"role", "user"}, {"content", question.prompt}}}},
                   {"max_tokens", question.most_tokens},
                   {"temperature", question.temperature},
                   {"top_p", question.top_p},
                   {"top_k", question.top_k},
                   {"stream", true},
                   {"stream_options", {{"include_usage", true}}}});
}

// Names with control characters, or of absurd length, are left out: databases do not hold them.
bool IsPlain(const std::string& name) {
  constexpr std::size_t kLongest = 500;
  return !name.empty() && name.size() <= kLongest &&
         std::ranges::all_of(name, [](char c) { return static_cast<unsigned char>(c) >= ' '; });
}

// The sentence of an answer that is an error.
Error StatusError(const http::Reply& reply) {
  return Error{ErrorCode::kUnavailable,
               fmt::format("status {}: {}", reply.status, Printable(reply.body))};
}

}  // namespace

// --- power ---

PowerFeed::PowerFeed(http::ClientOptions gateway, const Clock& clock)
    : gateway_(std::move(gateway)),
      clock_(clock),
      ticker_("zeus-power", [this] { return Follow(); }) {}

PowerFeed::~PowerFeed() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  if (client_) client_->Cancel();
}

void PowerFeed::Begin() {
  {
    const std::lock_guard lock(mutex_);
    if (++interested_ > 1) return;
    samples_.clear();
  }
  ticker_.Wake();
}

void PowerFeed::End() {
  const std::lock_guard lock(mutex_);
  if (--interested_ == 0 && client_) client_->Cancel();
}

TimePoint PowerFeed::Follow() {
  auto created = http::Client::Create(gateway_);
  if (!created.ok()) return Ticker::kWhenWoken;
  const std::shared_ptr<http::Client> client = std::move(created).value();
  {
    const std::lock_guard lock(mutex_);
    if (interested_ == 0 || stopping_) return Ticker::kWhenWoken;
    client_ = client;
  }
  std::string line;
  // Without it the page has no curves; the log of the answers says why the gateway is silent.
  (void)client->Stream({.path = "/zeus/live"},
                       [&](std::string_view bytes) { return Accept(bytes, line); });
  const std::lock_guard lock(mutex_);
  client_.reset();
  return interested_ == 0 || stopping_ ? Ticker::kWhenWoken : clock_.Now() + kPowerPause;
}

bool PowerFeed::Accept(std::string_view bytes, std::string& line) {
  for (const char byte : bytes) {
    if (byte != '\n') {
      line += byte;
      continue;
    }
    if (line.starts_with("data: ")) ReadEvent(std::string_view(line).substr(6));
    line.clear();
  }
  const std::lock_guard lock(mutex_);
  return interested_ > 0 && !stopping_ && line.size() < kLongestPowerLine;
}

void PowerFeed::ReadEvent(std::string_view text) {
  const auto json = ParseJson(text);
  if (!json.ok() || !json.value().is_object()) return;
  const auto groups = json.value().find("groups");
  if (groups == json.value().end() || !groups->is_array()) return;
  const TimePoint now = clock_.Now();
  const std::lock_guard lock(mutex_);
  for (const Json& group : *groups) {
    if (!group.is_object()) continue;
    const auto power = GetOptionalField<double>(group, "power_watts");
    const auto upstreams = GetField<std::vector<std::string>>(group, "upstreams");
    if (!power.ok() || !power.value() || !upstreams.ok()) continue;
    for (const std::string& upstream : upstreams.value()) {
      auto& samples = samples_[upstream];
      if (samples.size() >= kMostPowerSamples) samples.erase(samples.begin());
      samples.push_back({.at = now, .power = Watts(*power.value())});
    }
  }
}

std::vector<PowerSample> PowerFeed::Since(TimePoint begin, const std::string& upstream) const {
  const std::lock_guard lock(mutex_);
  std::vector<PowerSample> found;
  const auto samples = samples_.find(upstream);
  if (samples == samples_.end()) return found;
  for (const Sample& sample : samples->second)
    if (sample.at >= begin) found.push_back({.at = sample.at - begin, .power = sample.power});
  return found;
}

// --- answers ---

Result<std::unique_ptr<GatewayHost>> GatewayHost::Create(const GatewayHostOptions& options,
                                                         Clock& clock) {
  http::ClientOptions client = options.gateway;
  client.answer_timeout = Seconds(5);
  ZEUS_TRY(auto models, http::Client::Create(client));
  return std::unique_ptr<GatewayHost>(new GatewayHost(options, std::move(models), clock));
}

GatewayHost::GatewayHost(const GatewayHostOptions& options, std::unique_ptr<http::Client> models,
                         Clock& clock)
    : options_(options),
      models_client_(std::move(models)),
      clock_(clock),
      power_(options.gateway, clock),
      workers_(options.answers_at_once) {}

GatewayHost::~GatewayHost() {
  models_client_->Cancel();
  const std::lock_guard lock(mutex_);
  for (auto& [id, running] : running_) {
    running.aborted = true;
    if (running.client) running.client->Cancel();
  }
}

Result<std::vector<std::string>> GatewayHost::Models() {
  {
    std::unique_lock lock(mutex_);
    // One call asks, since a gateway that hangs would otherwise take all threads of the server.
    // Others get what was known before, or wait for the first answer.
    if (!models_at_) models_known_.wait(lock, [this] { return !asks_models_; });
    const bool fresh = models_at_ && models_.ok() && clock_.Now() - *models_at_ < kModelsPeriod;
    if (asks_models_ || fresh) return models_;
    asks_models_ = true;
  }
  auto models = AskModels();
  const std::lock_guard lock(mutex_);
  asks_models_ = false;
  models_known_.notify_all();
  models_ = std::move(models);
  models_at_ = clock_.Now();
  return models_;
}

Result<std::vector<std::string>> GatewayHost::AskModels() {
  ZEUS_TRY(const http::Reply reply, models_client_->Send({.path = "/v1/models"}));
  if (reply.status != 200) return StatusError(reply).While("list the models");
  ZEUS_TRY(const Json json, ParseJson(reply.body));
  std::set<std::string> names;
  if (const auto data = json.find("data"); data != json.end() && data->is_array())
    for (const Json& model : *data)
      if (const auto name = GetField<std::string>(model, "id"); name.ok() && IsPlain(name.value()))
        names.insert(name.value());
  return std::vector<std::string>(names.begin(), names.end());
}

ModelHost::AnswerId GatewayHost::Ask(Question question, std::shared_ptr<AnswerListener> listener) {
  AnswerId id = 0;
  {
    const std::lock_guard lock(mutex_);
    id = next_++;
    running_.emplace(id, Running{});
  }
  power_.Begin();
  workers_.Post([this, id, question = std::move(question), listener = std::move(listener)] {
    auto answer = Answer(id, question, *listener);
    {
      const std::lock_guard lock(mutex_);
      running_.erase(id);
    }
    power_.End();
    listener->OnEnd(std::move(answer));
  });
  return id;
}

void GatewayHost::Abort(AnswerId answer) {
  const std::lock_guard lock(mutex_);
  const auto found = running_.find(answer);
  if (found == running_.end()) return;
  found->second.aborted = true;
  if (found->second.client) found->second.client->Cancel();
}

bool GatewayHost::IsAborted(AnswerId id) const {
  const std::lock_guard lock(mutex_);
  const auto found = running_.find(id);
  return found == running_.end() || found->second.aborted;
}

Result<Contestant> GatewayHost::Answer(AnswerId id, const Question& question,
                                       AnswerListener& listener) {
  const TimePoint begin = clock_.Now();
  http::ClientOptions options = options_.gateway;
  options.answer_timeout = options_.idle_time;
  options.keep_connection = true;
  ZEUS_TRY(auto created, http::Client::Create(options));
  const std::shared_ptr<http::Client> client = std::move(created);
  {
    const std::lock_guard lock(mutex_);
    Running& running = running_.at(id);
    if (running.aborted) return Error{ErrorCode::kUnavailable, "the answer is not wanted any more"};
    running.client = client;
  }
  AnswerStream stream([&](std::string_view text) { listener.OnText(text); });
  ZEUS_TRY(const http::Reply reply, client->Stream({.method = http::Method::kPost,
                                                    .path = "/v1/chat/completions",
                                                    .body = ChatBody(question)},
                                                   [&](std::string_view bytes) {
                                                     stream.Feed(bytes);
                                                     return !stream.failed();
                                                   }));
  if (reply.status < 200 || reply.status >= 300) return StatusError(reply);
  ZEUS_TRY(Contestant answer, stream.Finish());
  listener.OnTextEnd();
  WaitForEnergy(id, *client, begin, answer);
  return answer;
}

// Sensors show the end of an answer up to half a second later.
void GatewayHost::WaitForEnergy(AnswerId id, http::Client& client, TimePoint begin,
                                Contestant& answer) {
  if (answer.request.empty()) {
    answer.absent_reason = "the gateway does not annotate its answers (--annotate)";
    return;
  }
  const TimePoint deadline = clock_.Now() + options_.energy_time;
  while (!IsAborted(id)) {
    const auto reply =
        client.Send({.path = "/zeus/requests/" + http::PercentEncoded(answer.request)});
    const auto json = reply.ok() && reply.value().status == 200 ? ParseJson(reply.value().body)
                                                                : Result<Json>(InvalidArgument(""));
    if (json.ok()) {
      ReadRequestFacts(json.value(), answer);
      const auto upstream = GetOptionalField<std::string>(json.value(), "upstream");
      if (upstream.ok() && upstream.value()) answer.power = power_.Since(begin, *upstream.value());
      const auto final = GetOptionalField<bool>(json.value(), "final");
      if (final.ok() && final.value().value_or(false)) return;
    }
    if (clock_.Now() >= deadline) return;
    clock_.SleepFor(kEnergyPeriod);
  }
}

}  // namespace zeus::colosseum
