#include "zeus/inference/benchmark/answer_reader.h"

#include <algorithm>
#include <cmath>

#include "zeus/base/json.h"

namespace zeus::inference {
namespace {

constexpr std::string_view kComment = ": energy ";
constexpr std::string_view kData = "data:";
constexpr std::size_t kLongestLine = std::size_t{1} << 20;

llm::RequestFacts FactsOf(std::string_view target, std::string_view body) {
  const auto facts = llm::InspectRequest("POST", target, "application/json", body);
  return facts.value_or(llm::RequestFacts{});
}

std::optional<Joules> JoulesOf(const Json& json, const char* field) {
  const auto value = GetOptionalField<double>(json, field);
  if (!value.ok() || !value.value() || !std::isfinite(*value.value())) return std::nullopt;
  return Joules(*value.value());
}

}  // namespace

std::optional<RequestEnergy> ReadRequestEnergy(const Json& json) {
  if (!json.is_object()) return std::nullopt;
  const auto energy = JoulesOf(json, "energy_joules");
  if (!energy) return std::nullopt;
  const auto final = GetOptionalField<bool>(json, "final");
  return RequestEnergy{.energy = *energy,
                       .sigma = JoulesOf(json, "sigma_joules").value_or(Joules(0)),
                       .prefill = JoulesOf(json, "prefill_joules"),
                       .decode = JoulesOf(json, "decode_joules"),
                       .final = final.ok() && final.value().value_or(false)};
}

AnswerReader::AnswerReader(std::string_view target, std::string_view body)
    : request_(FactsOf(target, body)) {}

AnswerReader::~AnswerReader() = default;

void AnswerReader::OnHead(int status, std::string_view content_type,
                          std::string_view content_encoding) {
  llm::ResponseFilter::Listener& listener = *this;
  filter_ =
      std::make_unique<llm::ResponseFilter>(request_,
                                            llm::ResponsePlan{.status = status,
                                                              .content_type = content_type,
                                                              .content_encoding = content_encoding,
                                                              .annotate = llm::Annotate::kNone},
                                            listener);
}

void AnswerReader::OnBody(TimePoint now, std::string_view bytes) {
  if (!filter_) return;
  now_ = now;
  passed_.clear();
  filter_->Feed(bytes, passed_);
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const std::string_view part = bytes.substr(0, end);
    if (line_.size() + part.size() > kLongestLine) skip_line_ = true;
    if (!skip_line_) line_.append(part);
    if (end == std::string_view::npos) return;
    bytes.remove_prefix(end + 1);
    if (!skip_line_) ReadLine(line_);
    line_.clear();
    skip_line_ = false;
  }
}

void AnswerReader::OnEnd(TimePoint now) {
  if (!filter_) return;
  now_ = now;
  passed_.clear();
  filter_->Finish(passed_);
  if (!line_.empty() && !skip_line_) ReadLine(line_);
  line_.clear();
  // One event may hold several tokens: the server's count is the true one.
  double seen = 0;
  for (const TokenArrival& arrival : arrivals_) seen += arrival.tokens;
  const double counted = filter_->facts().OutputTokens();
  if (seen <= 0 || counted <= 0) return;
  for (TokenArrival& arrival : arrivals_) arrival.tokens *= counted / seen;
}

void AnswerReader::ReadLine(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  const bool comment = line.starts_with(kComment);
  if (!comment && line.find("\"energy_joules\"") == std::string_view::npos) return;
  if (comment) line.remove_prefix(kComment.size());
  if (!comment && line.starts_with(kData)) line.remove_prefix(kData.size());
  const auto json = ParseJson(line);
  if (!json.ok() || !json.value().is_object()) return;
  const Json& object = json.value();
  const auto accept = [this](const std::optional<RequestEnergy>& energy) {
    if (energy) energy_ = energy;
  };
  if (comment) {
    accept(ReadRequestEnergy(object));
    return;
  }
  if (const auto usage = object.find("usage"); usage != object.end() && usage->is_object())
    if (const auto energy = usage->find("energy"); energy != usage->end())
      accept(ReadRequestEnergy(*energy));
  if (const auto energy = object.find("energy"); energy != object.end())
    accept(ReadRequestEnergy(*energy));
}

double AnswerReader::output_tokens() const { return filter_ ? filter_->facts().OutputTokens() : 0; }

std::optional<double> AnswerReader::prompt_tokens() const {
  if (!filter_) return std::nullopt;
  return filter_->facts().prompt_tokens;
}

bool AnswerReader::tokens_estimated() const {
  return !filter_ || !filter_->facts().output_tokens.has_value();
}

std::string AnswerReader::error() const { return filter_ ? filter_->facts().error : ""; }

std::string AnswerReader::blind_reason() const {
  return filter_ ? std::string(filter_->blind_reason()) : "";
}

void AnswerReader::OnTokens(double tokens) {
  if (tokens > 0) arrivals_.push_back({now_, tokens});
}

std::optional<llm::EnergyNote> AnswerReader::OnEnergyWanted(const llm::ResponseFacts& /*facts*/) {
  return std::nullopt;
}

}  // namespace zeus::inference
