#include "zeus/gateway/metering.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "zeus/base/json.h"

namespace zeus::gateway {
namespace {

// A request whose energy the sensors have not shown after this time is closed without.
constexpr Seconds kLongestWaitForSensors{60};
constexpr Seconds kLongestWaitAtStop{2};
constexpr Seconds kStepAtStop{0.02};
constexpr std::size_t kLargestStoredText = std::size_t{1} << 20;

std::vector<std::string> NamesOfUpstreams(const std::vector<UpstreamGpus>& upstreams) {
  std::vector<std::string> names;
  for (const UpstreamGpus& upstream : upstreams) names.push_back(upstream.name);
  return names;
}

RequestOutcome ToOutcome(ExchangeEnd end) {
  switch (end) {
    case ExchangeEnd::kCompleted:
      return RequestOutcome::kCompleted;
    case ExchangeEnd::kCancelled:
      return RequestOutcome::kCancelled;
    case ExchangeEnd::kFailed:
      return RequestOutcome::kFailed;
  }
  return RequestOutcome::kFailed;
}

const char* OutcomeName(ExchangeEnd end) {
  switch (end) {
    case ExchangeEnd::kCompleted:
      return "completed";
    case ExchangeEnd::kCancelled:
      return "cancelled";
    case ExchangeEnd::kFailed:
      return "failed";
  }
  return "failed";
}

void StoreText(std::string_view bytes, std::string& stored) {
  stored.append(bytes.substr(0, kLargestStoredText - std::min(kLargestStoredText, stored.size())));
}

// Grams as a JSON number, or null.
Json PerToken(Joules energy, double tokens) {
  return tokens > 0 ? FiniteOrNull(energy.value() / tokens) : Json();
}

}  // namespace

// One metered request. The record is in the store, under the number, until it is closed.
class Metering::MeteredExchange final : public Exchange, private llm::ResponseFilter::Listener {
 public:
  MeteredExchange(Metering& metering, RequestRecord& record, Begin begin)
      : metering_(metering),
        record_(record),
        facts_(std::move(begin.facts)),
        usage_asked_(begin.usage_asked) {}

  std::string_view request_id() const override { return record_.id; }

  void OnHead(ResponseHead& head) override {
    record_.first_byte = metering_.clock_.Now();
    record_.status = head.status;
    head.fields.Set("x-zeus-request", record_.id);
    filter_.emplace(facts_,
                    llm::ResponsePlan{.status = head.status,
                                      .content_type = head.fields.Get("content-type"),
                                      .content_encoding = head.fields.Get("content-encoding"),
                                      .annotate = metering_.options_.annotate,
                                      .remove_usage_event = usage_asked_},
                    static_cast<llm::ResponseFilter::Listener&>(*this));
  }

  void OnBody(std::string_view in, std::string& out) override {
    if (metering_.options_.store_text) StoreText(in, record_.response_body);
    filter_->Feed(in, out);
  }

  void OnBodyEnd(std::string& out, HeaderFields* unsent_head) override {
    if (!filter_) return;
    filter_->Finish(out);
    TellEnd(ExchangeEnd::kCompleted);
    if (unsent_head == nullptr || !annotates()) return;
    for (const auto& [name, value] : llm::ToHeaders(MakeNote(record_, metering_.clock_.Now())))
      unsent_head->Set(name, value);
  }

  void OnBodyBroken(std::string& out) override {
    if (filter_) filter_->Abandon(out);
  }

  void AddTrailers(HeaderFields& trailers) override {
    if (!annotates() || !record_.energy) return;
    for (const auto& [name, value] : llm::ToHeaders(MakeNote(record_, metering_.clock_.Now())))
      if (name != "x-zeus-request") trailers.Add(name, value);
  }
  std::string_view trailer_names() const override {
    if (!annotates() || !metering_.energy_.absent_reason(record_.upstream_index).empty()) return {};
    return metering_.options_.carbon
               ? "x-zeus-energy-joules, x-zeus-energy-sigma-joules, x-zeus-carbon-grams"
               : "x-zeus-energy-joules, x-zeus-energy-sigma-joules";
  }

  bool changes_length() const override { return filter_ && filter_->changes_length(); }
  bool holds_body() const override { return filter_ && filter_->holds_body(); }

  void OnEnd(ExchangeEnd end, int status, const std::string& reason) override {
    record_.status = status;
    record_.reason = reason;
    TellEnd(end);
    record_.outcome = OutcomeName(end);
    metering_.Finish(record_);
  }

 private:
  bool annotates() const { return metering_.options_.annotate != llm::Annotate::kNone; }

  void OnTokens(double tokens) override {
    const TimePoint now = metering_.clock_.Now();
    if (!record_.first_token) record_.first_token = now;
    record_.last_token = now;
    record_.tokens_seen += tokens;
    metering_.rate_.tokens += tokens;
    if (end_told_) return;
    TellPromptCount();
    metering_.energy_.TokensArrived(record_.upstream_index, record_.number, now, tokens);
    ReportTokens(now);
  }

  // Servers with running counts (vLLM's continuous usage) tell the prompt's tokens before the end.
  void TellPromptCount() {
    const llm::ResponseFacts& facts = filter_->facts();
    if (prompt_told_ || !facts.prompt_tokens) return;
    prompt_told_ = true;
    metering_.energy_.CountsSeen(record_.upstream_index, record_.number,
                                 {.prompt = facts.prompt_tokens, .cached = facts.cached_tokens});
  }

  // Reports whole tokens of one sequence to the observer.
  void ReportTokens(TimePoint now) {
    if (metering_.options_.observer == nullptr || !facts_.streamed) return;
    const double sequences = std::max(1U, facts_.sequences);
    const double whole = std::max(1.0, std::floor(record_.tokens_seen / sequences));
    if (whole > reported_tokens_)
      Report(RequestEvent::Kind::kTokens, now, whole - reported_tokens_);
    reported_tokens_ = whole;
  }

  void Report(RequestEvent::Kind kind, TimePoint now, double tokens) {
    if (metering_.options_.observer == nullptr) return;
    metering_.options_.observer->OnRequest({.kind = kind,
                                            .upstream = record_.upstream_index,
                                            .id = record_.number,
                                            .time = now,
                                            .tokens = tokens});
  }

  std::optional<llm::EnergyNote> OnEnergyWanted(const llm::ResponseFacts& /*facts*/) override {
    TellEnd(ExchangeEnd::kCompleted);
    return MakeNote(record_, metering_.clock_.Now());
  }

  // Tells the attribution that the request has ended, once, and updates the record.
  void TellEnd(ExchangeEnd end) {
    const TimePoint now = metering_.clock_.Now();
    const llm::ResponseFacts facts = filter_ ? filter_->facts() : llm::ResponseFacts();
    record_.ended = now;
    record_.prompt_tokens = facts.PromptTokens(facts_);
    record_.cached_tokens = facts.cached_tokens;
    record_.output_tokens = facts.OutputTokens();
    record_.server_times = facts.times;
    record_.tokens_estimated = facts.estimated();
    // A response that nobody could read did some work, but how much is not known.
    const bool unread = facts.seen_tokens <= 0 && !facts.output_tokens && !facts.prompt_tokens;
    record_.unread_reason = filter_ && unread ? std::string(filter_->blind_reason()) : "";
    if (!std::exchange(end_told_, true)) {
      Report(RequestEvent::Kind::kEnded, now,
             std::max(0.0, facts.prompt_tokens.value_or(0) - facts.cached_tokens.value_or(0)));
      metering_.energy_.RequestEnded(record_.upstream_index, record_.number,
                                     {.time = now,
                                      .outcome = ToOutcome(end),
                                      .counts = {.prompt = facts.prompt_tokens,
                                                 .cached = facts.cached_tokens,
                                                 .output = facts.output_tokens},
                                      .timings = {.decode = facts.times.decode}});
    }
    metering_.UpdateEnergy(record_);
  }

  Metering& metering_;
  RequestRecord& record_;
  const llm::RequestFacts facts_;
  const bool usage_asked_;
  std::optional<llm::ResponseFilter> filter_{};
  bool prompt_told_ = false;
  bool end_told_ = false;
  double reported_tokens_ = 0;
};

Metering::Metering(MeteringOptions options, EnergyMonitor* monitor,
                   std::vector<UpstreamGpus> upstreams, const Clock& clock)
    : options_(std::move(options)),
      monitor_(monitor),
      clock_(clock),
      upstream_names_(NamesOfUpstreams(upstreams)),
      energy_(monitor, std::move(upstreams), options_.observer),
      records_(options_.kept_requests) {}

Metering::~Metering() = default;

Metering::Started Metering::Start(Begin begin) {
  RequestRecord record;
  record.arrived_wall = clock_.WallNow();
  record.arrived = clock_.Now();
  record.id = MakeRequestId(record.arrived_wall);
  record.client_id = std::move(begin.client_id);
  record.key = std::move(begin.key);
  record.upstream_index = begin.upstream;
  record.upstream = upstream_names_[begin.upstream];
  record.model = begin.facts.model;
  record.dialect = llm::ToText(begin.facts.dialect);
  record.streamed = begin.facts.streamed;
  record.gpus = energy_.gpus(begin.upstream);
  record.source = energy_.Source(begin.upstream);
  if (options_.store_text) StoreText(begin.body, record.request_body);
  RequestRecord& stored = records_.Add(std::move(record));
  ++in_flight_;
  metrics_.Started(stored);
  energy_.RequestArrived(begin.upstream, stored.number,
                         {.time = stored.arrived,
                          .prompt_bytes = begin.facts.prompt_bytes,
                          .sequences = begin.facts.sequences,
                          .streamed = begin.facts.streamed});
  if (options_.observer != nullptr)
    options_.observer->OnRequest({.kind = RequestEvent::Kind::kArrived,
                                  .upstream = begin.upstream,
                                  .id = stored.number,
                                  .time = stored.arrived,
                                  .tokens = begin.facts.EstimatedPromptTokens(),
                                  .model = stored.model});
  return {.id = stored.id,
          .exchange = std::make_unique<MeteredExchange>(*this, stored, std::move(begin))};
}

void Metering::UpdateEnergy(RequestRecord& record) {
  if (record.settled) return;
  record.absent_reason = energy_.absent_reason(record.upstream_index);
  if (record.absent_reason.empty()) record.absent_reason = record.unread_reason;
  record.energy = record.absent_reason.empty()
                      ? energy_.Estimate(record.upstream_index, record.number)
                      : std::nullopt;
  UpdateCarbon(record);
}

void Metering::UpdateCarbon(RequestRecord& record) const {
  if (!record.energy || !options_.carbon) return;
  const WallTime end = record.arrived_wall + std::chrono::duration_cast<std::chrono::microseconds>(
                                                 record.Duration(clock_.Now()));
  record.carbon_grams = options_.carbon(record.arrived_wall, end, record.energy->energy);
}

void Metering::Finish(RequestRecord& record) {
  --in_flight_;
  metrics_.Ended(record);
  if (record.settled) metrics_.Settled(record);
  if (record.settled || !energy_.GroupIndex(record.upstream_index)) Close(record);
}

// The energy may be final before the client has got the end of the response: then the record is
// closed when it has.
void Metering::Settle(RequestRecord& record, const RequestEnergy& energy) {
  record.settled = true;
  record.absent_reason = energy_.absent_reason(record.upstream_index);
  // A request of which no sensor saw anything has no energy. Otherwise the part that was measured
  // is in the accounts, so it is the request's. What a response did that could not be read is a
  // guess, and stays in the accounts alone.
  if (!record.unread_reason.empty()) {
    record.absent_reason = record.unread_reason;
    record.energy.reset();
  } else if (record.absent_reason.empty() || energy.energy > Joules(0)) {
    record.absent_reason.clear();
    record.energy = energy;
  } else {
    record.energy.reset();
  }
  UpdateCarbon(record);
  if (record.outcome.empty()) return;
  metrics_.Settled(record);
  Close(record);
}

void Metering::Step() {
  const TimePoint now = clock_.Now();
  energy_.Step(now);
  for (const SettledRequest& settled : energy_.TakeSettled())
    if (RequestRecord* const record = records_.FindOpen(settled.id))
      Settle(*record, settled.energy);
  metrics_.FollowAccounts(energy_);
  if (now < next_check_) return;
  next_check_ = now + Seconds(1);
  for (const InferenceRequestId number : records_.OpenNumbers()) {
    RequestRecord* const record = records_.FindOpen(number);
    if (record->outcome.empty() || now - *record->ended < kLongestWaitForSensors) continue;
    UpdateEnergy(*record);
    Close(*record);
  }
}

bool Metering::WaitsForSensors() {
  return std::ranges::any_of(records_.OpenNumbers(), [this](InferenceRequestId number) {
    const RequestRecord* const record = records_.FindOpen(number);
    return !record->outcome.empty() && energy_.absent_reason(record->upstream_index).empty();
  });
}

void Metering::CloseAll() {
  Step();
  const TimePoint deadline = clock_.Now() + kLongestWaitAtStop;
  while (monitor_ != nullptr && WaitsForSensors() && clock_.Now() < deadline) {
    monitor_->clock().SleepUntil(clock_.Now() + kStepAtStop);
    Step();
  }
  for (const InferenceRequestId number : records_.OpenNumbers()) {
    RequestRecord* const record = records_.FindOpen(number);
    if (record->outcome.empty()) continue;
    UpdateEnergy(*record);
    Close(*record);
  }
}

void Metering::Close(RequestRecord& record) {
  if (options_.spread_idle) SpreadIdle(record);
  if (options_.log) options_.log(JsonText(ToJson(record, clock_.Now())));
  records_.Close(record.number);
}

// Charges the request for the energy that its group took while nothing was in flight: as much for
// each output token as all of them have cost since the start.
void Metering::SpreadIdle(RequestRecord& record) {
  const auto group = energy_.GroupIndex(record.upstream_index);
  if (!group) return;
  const auto& upstreams = energy_.groups()[*group].upstreams;
  double tokens = 0;
  for (const LlmMetrics::Model& model : metrics_.models())
    if (std::ranges::find(upstreams, model.upstream) != upstreams.end())
      tokens += model.output_tokens;
  const Joules idle = energy_.groups()[*group].attribution->accounts().idle;
  if (tokens > 0) record.idle = idle * (record.output_tokens.value_or(0) / tokens);
}

void Metering::RunningRequestsSeen(std::size_t upstream, double running) {
  energy_.RunningRequestsSeen(upstream, clock_.Now(), running);
}

Json Metering::ModelsJson() const {
  Json models = Json::array();
  for (const LlmMetrics::Model& model : metrics_.models()) {
    Json entry{{"model", model.name},
               {"upstream", model.upstream_name},
               {"running", model.running},
               {"requests", model.requests},
               {"prompt_tokens", model.prompt_tokens},
               {"cached_tokens", model.cached_tokens},
               {"output_tokens", model.output_tokens},
               {"prefill_joules", model.prefill.value()},
               {"decode_joules", model.decode.value()},
               {"joules_per_output_token",
                PerToken(model.prefill + model.decode, model.final_output_tokens)},
               {"gpus", energy_.gpus(model.upstream)}};
    const auto group = energy_.GroupIndex(model.upstream);
    if (const std::string& reason = energy_.absent_reason(model.upstream); !reason.empty())
      entry["absent_reason"] = reason;
    if (group) AddLaw(energy_.groups()[*group], energy_.engine(model.upstream), entry);
    models.push_back(std::move(entry));
  }
  return Json{{"models", std::move(models)}};
}

// Adds the learned law of the engine's iterations, and how well it explains the sensors.
void Metering::AddLaw(const EnergyGroups::Group& group, EngineIndex engine, Json& entry) {
  const LearnedLaw law = group.attribution->Law(engine);
  const auto terms = [](const IterationEnergyLaw& of) {
    return Json{{"fixed_joules", FiniteOrNull(of.fixed.value())},
                {"per_sequence_joules", FiniteOrNull(of.per_sequence.value())},
                {"per_context_joules", FiniteOrNull(of.per_context.value())},
                {"per_prompt_joules", FiniteOrNull(of.per_prompt.value())}};
  };
  entry["theta"] = terms(law.energy);
  entry["theta_sigma"] = terms(law.sigma);
  entry["iteration_seconds"] = Json{{"fixed", FiniteOrNull(law.fixed_time.count())},
                                    {"per_sequence", FiniteOrNull(law.time_per_sequence.count())},
                                    {"per_context", FiniteOrNull(law.time_per_context.count())},
                                    {"per_prompt", FiniteOrNull(law.time_per_prompt.count())}};
  entry["mean_batch"] = FiniteOrNull(law.mean_batch);
  entry["idle_watts"] = FiniteOrNull(group.attribution->idle_power().value());
  entry["residual_ratio"] = FiniteOrNull(group.attribution->residual_ratio());
}

Json Metering::GroupJson(const EnergyGroups::Group& group) const {
  Json entry{{"upstreams", Json::array()}, {"gpus", Json::array()}};
  for (const std::size_t upstream : group.upstreams) {
    entry["upstreams"].push_back(upstream_names_[upstream]);
    for (const std::string& gpu : energy_.gpus(upstream))
      if (std::ranges::find(entry["gpus"], Json(gpu)) == entry["gpus"].end())
        entry["gpus"].push_back(gpu);
  }
  const auto watts = energy_.Power(group);
  entry["power_watts"] = watts ? FiniteOrNull(watts->value()) : Json();
  entry["batch"] =
      FiniteOrNull(group.attribution->Law(energy_.engine(group.upstreams.front())).mean_batch);
  if (const auto clock = energy_.GraphicsClock(group)) entry["clock_hertz"] = clock->value();
  return entry;
}

Json Metering::LiveJson() {
  const TimePoint now = clock_.Now();
  const Seconds passed = now - rate_.since;
  const double tokens_per_second = rate_.since == TimePoint() || passed <= Seconds(0)
                                       ? 0
                                       : (rate_.tokens - rate_.tokens_before) / passed.count();
  rate_.since = now;
  rate_.tokens_before = rate_.tokens;
  Json groups = Json::array();
  Watts power;
  bool power_known = !energy_.groups().empty();
  for (const EnergyGroups::Group& group : energy_.groups()) {
    groups.push_back(GroupJson(group));
    if (const auto watts = energy_.Power(group))
      power += *watts;
    else
      power_known = false;
  }
  return Json{{"power_watts", power_known ? FiniteOrNull(power.value()) : Json()},
              {"running", in_flight_},
              {"tokens_per_second", FiniteOrNull(tokens_per_second)},
              {"joules_per_token", power_known && tokens_per_second > 0
                                       ? FiniteOrNull(power.value() / tokens_per_second)
                                       : Json()},
              {"groups", std::move(groups)}};
}

void Metering::AddMetrics(MetricSet& set) const { metrics_.AddTo(set, energy_); }

}  // namespace zeus::gateway
