#include "zeus/colosseum/api/answer_stream.h"

#include <cmath>
#include <utility>

#include "zeus/base/json.h"
#include "zeus/base/text.h"

namespace zeus::colosseum {
namespace {

constexpr std::string_view kEnergyComment = ": energy ";
constexpr std::string_view kDataField = "data:";
constexpr std::size_t kLongestLine = std::size_t{1} << 20;

std::optional<double> FiniteMember(const Json& json, const char* name) {
  const auto value = GetOptionalField<double>(json, name);
  if (!value.ok() || !value.value() || !std::isfinite(*value.value())) return std::nullopt;
  return value.value();
}

std::optional<Joules> JoulesMember(const Json& json, const char* name) {
  const auto value = FiniteMember(json, name);
  if (!value) return std::nullopt;
  return Joules(*value);
}

std::string TextMember(const Json& json, const char* name) {
  const auto value = GetOptionalField<std::string>(json, name);
  return value.ok() ? value.value().value_or("") : std::string();
}

}  // namespace

void ReadRequestFacts(const Json& json, Contestant& answer) {
  if (!json.is_object()) return;
  if (std::string request = TextMember(json, "request"); !request.empty())
    answer.request = std::move(request);
  if (const auto tokens = FiniteMember(json, "prompt_tokens")) answer.prompt_tokens = tokens;
  if (const auto tokens = FiniteMember(json, "output_tokens")) answer.output_tokens = tokens;
  if (const auto duration = FiniteMember(json, "duration_seconds"))
    answer.duration = Seconds(*duration);
  answer.absent_reason = TextMember(json, "absent_reason");
  const auto energy = JoulesMember(json, "energy_joules");
  if (!energy) return;
  const auto final = GetOptionalField<bool>(json, "final");
  answer.energy = AnswerEnergy{.energy = *energy,
                               .sigma = JoulesMember(json, "sigma_joules").value_or(Joules(0)),
                               .prefill = JoulesMember(json, "prefill_joules"),
                               .prefill_sigma = JoulesMember(json, "prefill_sigma_joules"),
                               .decode = JoulesMember(json, "decode_joules"),
                               .decode_sigma = JoulesMember(json, "decode_sigma_joules"),
                               .final = final.ok() && final.value().value_or(false)};
}

void AnswerStream::Feed(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const std::string_view part = bytes.substr(0, end);
    if (line_.size() + part.size() > kLongestLine) skips_line_ = true;
    if (!skips_line_) line_ += part;
    if (end == std::string_view::npos) return;
    bytes.remove_prefix(end + 1);
    if (!skips_line_) ReadLine(line_);
    line_.clear();
    skips_line_ = false;
  }
}

Result<Contestant> AnswerStream::Finish() {
  if (!line_.empty() && !skips_line_) ReadLine(std::exchange(line_, {}));
  if (!error_.empty()) return Error{ErrorCode::kUnavailable, error_};
  if (!has_text_) return Error{ErrorCode::kUnavailable, "the answer has no text"};
  return std::move(facts_);
}

void AnswerStream::ReadLine(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  const bool is_comment = line.starts_with(kEnergyComment);
  if (!is_comment && !line.starts_with(kDataField)) return;
  line.remove_prefix(is_comment ? kEnergyComment.size() : kDataField.size());
  const auto json = ParseJson(Trim(line));
  if (!json.ok() || !json.value().is_object()) return;  // "[DONE]", or a dialect of its own.
  if (is_comment)
    ReadRequestFacts(json.value(), facts_);
  else
    ReadEvent(json.value());
}

void AnswerStream::ReadEvent(const Json& event) {
  if (const auto error = event.find("error"); error != event.end() && !error->is_null()) {
    error_ = error->is_object() ? TextMember(*error, "message") : JsonText(*error);
    if (error_.empty()) error_ = "the server has reported an error";
    return;
  }
  if (const auto usage = event.find("usage"); usage != event.end() && usage->is_object()) {
    if (const auto tokens = FiniteMember(*usage, "prompt_tokens")) facts_.prompt_tokens = tokens;
    if (const auto tokens = FiniteMember(*usage, "completion_tokens"))
      facts_.output_tokens = tokens;
    if (const auto energy = usage->find("energy"); energy != usage->end())
      ReadRequestFacts(*energy, facts_);
  }
  const auto choices = event.find("choices");
  if (choices == event.end() || !choices->is_array() || choices->empty()) return;
  const Json& choice = choices->front();
  if (!choice.is_object()) return;
  const auto delta = choice.find("delta");
  if (delta == choice.end() || !delta->is_object()) return;
  // Thoughts are not shown: that a model thinks aloud would tell which one it is.
  const std::string text = TextMember(*delta, "content");
  if (text.empty()) return;
  has_text_ = true;
  on_text_(text);
}

}  // namespace zeus::colosseum
