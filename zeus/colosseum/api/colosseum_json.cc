#include "zeus/colosseum/api/colosseum_json.h"

#include <optional>
#include <string>
#include <utility>

#include "zeus/base/json.h"
#include "zeus/base/wall_time_text.h"

namespace zeus::colosseum {
namespace {

Json NumberOrNullJson(const std::optional<double>& value) {
  return value ? FiniteOrNull(*value) : Json();
}

Json JoulesOrNullJson(const std::optional<Joules>& value) {
  return value ? FiniteOrNull(value->value()) : Json();
}

std::string SideKey(Side side) { return std::string(Name(For(side))); }

Json EnergyJson(const Contestant& side) {
  if (!side.energy) {
    // The gateway's reason may name its GPUs.
    return {{"energy_joules", nullptr}, {"final", true}};
  }
  const AnswerEnergy& energy = *side.energy;
  return {{"energy_joules", FiniteOrNull(energy.energy.value())},
          {"sigma_joules", FiniteOrNull(energy.sigma.value())},
          {"prefill_joules", JoulesOrNullJson(energy.prefill)},
          {"prefill_sigma_joules", JoulesOrNullJson(energy.prefill_sigma)},
          {"decode_joules", JoulesOrNullJson(energy.decode)},
          {"decode_sigma_joules", JoulesOrNullJson(energy.decode_sigma)},
          {"final", energy.final}};
}

Json PowerJson(const Contestant& side) {
  Json samples = Json::array();
  for (const PowerSample& sample : side.power)
    samples.push_back({sample.at.count(), FiniteOrNull(sample.power.value())});
  return samples;
}

Json ComparisonJson(const Duel& duel) {
  const Comparison comparison = CompareEnergy(duel);
  if (comparison.verdict == Comparison::Verdict::kUnknown)
    return {{"verdict", Name(comparison.verdict)}};
  return {{"verdict", Name(comparison.verdict)},
          {"difference_joules", FiniteOrNull(comparison.difference.value())},
          {"sigma_joules", FiniteOrNull(comparison.sigma.value())},
          {"ratio", FiniteOrNull(comparison.ratio)}};
}

Json IdentityJson(const Contestant& side) {
  Json identity = {
      {"model", side.model},
      {"prompt_tokens", NumberOrNullJson(side.prompt_tokens)},
      {"output_tokens", NumberOrNullJson(side.output_tokens)},
      {"duration_seconds", side.duration ? FiniteOrNull(side.duration->count()) : Json()}};
  if (!side.energy && !side.absent_reason.empty()) identity["absent_reason"] = side.absent_reason;
  if (side.energy && side.output_tokens.value_or(0) > 0)
    identity["joules_per_output_token"] =
        FiniteOrNull(side.energy->energy.value() / *side.output_tokens);
  if (!side.text.empty()) identity["text"] = side.text;
  return identity;
}

Json IntervalJson(double value, const std::optional<Interval>& interval) {
  return {{"value", FiniteOrNull(value)},
          {"low", interval ? FiniteOrNull(interval->low) : Json()},
          {"high", interval ? FiniteOrNull(interval->high) : Json()}};
}

Json ShareJson(const Share& share) {
  const auto value = share.value();
  if (!value) return {{"value", nullptr}, {"low", nullptr}, {"high", nullptr}, {"cases", 0}};
  Json json = IntervalJson(*value, share.interval());
  json["cases"] = share.cases;
  return json;
}

Json MedianJson(const std::optional<Median>& median) {
  if (!median) return {};
  Json json = IntervalJson(median->value, median->interval);
  json["count"] = median->count;
  return json;
}

}  // namespace

Json VisibleJson(const Duel& duel) {
  Json json = {
      {"id", duel.id}, {"created_at", ToText(duel.created_at)}, {"stage", NameOfStage(duel.stage)}};
  const bool waits =
      std::holds_alternative<Voting>(duel.stage) || std::holds_alternative<Weighing>(duel.stage);
  const auto end = duel.stage_at + std::chrono::duration_cast<WallTime::duration>(kVotingTime);
  if (waits) json["expires_at"] = ToText(end);
  Json votes = Json::object();
  for (const Vote& vote : duel.votes) votes[std::string(Name(vote.ballot))] = Name(vote.choice);
  json["votes"] = std::move(votes);
  if (duel.Find(Ballot::kResponse) == nullptr) return json;
  Json energy = Json::object();
  Json power = Json::object();
  for (const Side side : kSides) {
    energy[SideKey(side)] = EnergyJson(duel.at(side));
    power[SideKey(side)] = PowerJson(duel.at(side));
  }
  json["energy"] = std::move(energy);
  json["power_watts"] = std::move(power);
  json["comparison"] = ComparisonJson(duel);
  if (!std::holds_alternative<Revealed>(duel.stage)) return json;
  Json answers = Json::object();
  for (const Side side : kSides) answers[SideKey(side)] = IdentityJson(duel.at(side));
  json["answers"] = std::move(answers);
  json["preference"] = duel.preference;
  json["change_until"] = ToText(end);
  if (!duel.prompt.empty()) json["prompt"] = duel.prompt;
  return json;
}

Json PublicJson(const Duel& duel) {
  Json json = VisibleJson(duel);
  json.erase("id");
  json.erase("prompt");
  json.erase("change_until");
  json["created_at"] = ToExactText(duel.created_at);
  if (const auto answers = json.find("answers"); answers != json.end())
    for (Json& answer : *answers) answer.erase("text");
  return json;
}

Json ToJson(const std::vector<Standing>& standings) {
  Json models = Json::array();
  double sides = 0;
  for (const Standing& standing : standings) {
    sides += static_cast<double>(standing.games);
    models.push_back({{"model", standing.model},
                      {"games", standing.games},
                      {"wins", standing.wins},
                      {"ties", standing.ties},
                      {"win_rate", ShareJson(standing.win_rate)},
                      {"rating", IntervalJson(standing.rating, standing.rating_interval)},
                      {"response_joules", MedianJson(standing.response_joules)},
                      {"token_joules", MedianJson(standing.token_joules)},
                      {"turned", ShareJson(standing.turned)},
                      {"frontier", standing.on_frontier}});
  }
  return {{"models", std::move(models)}, {"duels", sides / 2}, {"confidence", 0.95}};
}

}  // namespace zeus::colosseum
