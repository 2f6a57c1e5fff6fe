#include "zeus/recording/answers.h"

#include <algorithm>

#include "zeus/device/nvml/nvml_abi.h"

namespace zeus::recording {
namespace {

constexpr std::size_t kFieldKey = 2 * sizeof(std::uint32_t);
constexpr std::size_t kFieldSize = sizeof(nvml::FieldValue);

std::uint64_t Begin(const Call* call) { return call->header.begin; }
std::uint64_t Begin(const Answers::FieldAnswer& answer) { return answer.begin; }

std::uint64_t Distance(std::uint64_t one, std::uint64_t other) {
  return one > other ? one - other : other - one;
}

// The position of the nearest in a list that is in the order of time.
template <class Element>
std::size_t NearestIn(const std::vector<Element>& list, std::uint64_t time) {
  const auto after = std::ranges::lower_bound(
      list, time, {}, [](const Element& element) { return Begin(element); });
  if (after == list.begin()) return 0;
  const auto before = after - 1;
  const bool earlier =
      after == list.end() || Distance(Begin(*before), time) <= Distance(Begin(*after), time);
  return static_cast<std::size_t>((earlier ? before : after) - list.begin());
}

std::string FieldKey(std::string_view device, std::string_view field) {
  return std::string(device) + std::string(field);
}

}  // namespace

std::string Answers::Key(std::uint16_t function, std::string_view question) {
  std::string key;
  Append(key, Functions()[function].canonical);
  key += question;
  return key;
}

Answers::Answers(const std::vector<RecordedCall>& calls) {
  static const auto kFieldValues = FindFunction("nvmlDeviceGetFieldValues");
  for (const RecordedCall& recorded : calls) {
    const Call& call = recorded.call;
    by_question_[Key(call.header.function, call.question)].push_back(&call);
    if (call.header.function != kFieldValues) continue;
    const std::string_view asked = call.inputs[2];
    for (std::size_t i = 0; i * kFieldKey < asked.size(); ++i) {
      const bool answered = call.outputs[2].size() >= (i + 1) * kFieldSize;
      if (!answered && call.header.code == nvml::kSuccess) continue;
      by_field_[FieldKey(call.inputs[0], asked.substr(i * kFieldKey, kFieldKey))].push_back(
          {.code = call.header.code,
           .value =
               answered ? call.outputs[2].substr(i * kFieldSize, kFieldSize) : std::string_view(),
           .begin = call.header.begin});
    }
  }
  for (auto& [key, list] : by_question_)
    std::ranges::stable_sort(list, {}, [](const Call* call) { return Begin(call); });
  for (auto& [key, list] : by_field_)
    std::ranges::stable_sort(list, {}, [](const FieldAnswer& answer) { return answer.begin; });
}

FoundAnswer Answers::Nearest(std::uint16_t function, std::string_view question,
                             std::uint64_t time) const {
  const auto found = by_question_.find(Key(function, question));
  if (found == by_question_.end()) return {};
  const auto& list = found->second;
  const std::size_t nearest = NearestIn(list, time);
  const auto too_small = [](const Call* call) {
    return call->header.code == nvml::kInsufficientSize;
  };
  if (!too_small(list[nearest])) return {.match = Match::kNearest, .call = list[nearest]};
  // Programs ask without room first, to learn how much it takes.
  const Call* best = list[nearest];
  for (const Call* call : list)
    if (!too_small(call) &&
        (too_small(best) || Distance(Begin(call), time) < Distance(Begin(best), time)))
      best = call;
  return {.match = Match::kNearest, .call = best};
}

std::optional<Answers::FieldAnswer> Answers::NearestField(std::string_view device,
                                                          std::string_view field,
                                                          std::uint64_t time) const {
  const auto found = by_field_.find(FieldKey(device, field));
  if (found == by_field_.end()) return std::nullopt;
  return found->second[NearestIn(found->second, time)];
}

Answers::Track Answers::TrackOf(const std::vector<RecordedCall>& calls,
                                std::uint32_t process) const {
  Track track;
  for (const RecordedCall& recorded : calls)
    if (recorded.process == process)
      track[{recorded.call.header.thread,
             Key(recorded.call.header.function, recorded.call.question)}]
          .push_back(&recorded.call);
  return track;
}

}  // namespace zeus::recording
