#include "zeus/optimizer/pipeline/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "zeus/base/text.h"

namespace zeus::pipeline {
namespace {

using StageOrder = std::vector<Instruction>;

Instruction Make(std::string_view name, int microbatch, int chunk = 0) {
  return {std::string(name), microbatch, chunk};
}

// Issues `warmup` forwards, then forwards and backwards in turn, then the backwards that are left.
// `issue(true, k)` appends the k-th forward, `issue(false, k)` the k-th backward.
template <class Issue>
void OneForwardOneBackward(int warmup, int total, const Issue& issue) {
  for (int k = 0; k < warmup; ++k) issue(true, k);
  for (int k = 0; k < total - warmup; ++k) {
    issue(true, warmup + k);
    issue(false, k);
  }
  for (int k = total - warmup; k < total; ++k) issue(false, k);
}

int Warmup(const ScheduleShape& shape, int stage) {
  return std::min(shape.stages - 1 - stage, shape.microbatches);
}

StageOrder OneF1B(const ScheduleShape& shape, int stage) {
  StageOrder order;
  OneForwardOneBackward(Warmup(shape, stage), shape.microbatches, [&](bool forward, int k) {
    order.push_back(Make(forward ? kForward : kBackward, k));
  });
  return order;
}

StageOrder GPipe(const ScheduleShape& shape, int /*stage*/) {
  StageOrder order;
  for (int m = 0; m < shape.microbatches; ++m) order.push_back(Make(kForward, m));
  for (int m = 0; m < shape.microbatches; ++m) order.push_back(Make(kBackward, m));
  return order;
}

// The order of Megatron: groups of as many microbatches as there are stages go through a chunk
// before the next chunk begins; backwards take the chunks in reverse.
StageOrder Interleaved(const ScheduleShape& shape, int stage) {
  const int group = shape.stages * shape.chunks;
  const int total = shape.microbatches * shape.chunks;
  const auto issued = [&](bool forward, int k) {
    const int within = k % group;
    const int chunk = within / shape.stages;
    const int microbatch = k / group * shape.stages + within % shape.stages;
    return Make(forward ? kForward : kBackward, microbatch,
                forward ? chunk : shape.chunks - 1 - chunk);
  };
  const int ahead = (shape.stages - 1 - stage) * 2 + (shape.chunks - 1) * shape.stages;
  const int warmup = shape.microbatches == shape.stages ? total : std::min(ahead, total);
  StageOrder order;
  OneForwardOneBackward(warmup, total,
                        [&](bool forward, int k) { order.push_back(issued(forward, k)); });
  return order;
}

// Activations are recomputed. Where a stage would wait before a backward, it recomputes in that
// time, as a separate instruction; elsewhere the recomputation is fused with the backward. The last
// stage never waits.
StageOrder EarlyRecompute(const ScheduleShape& shape, int stage) {
  const auto fused = [&](int m) { return m <= shape.microbatches - shape.stages + stage; };
  StageOrder order;
  OneForwardOneBackward(Warmup(shape, stage), shape.microbatches, [&](bool forward, int k) {
    if (forward) {
      order.push_back(Make(kForward, k));
      return;
    }
    if (!fused(k) && stage + 1 < shape.stages) order.push_back(Make(kRecomputation, k));
    order.push_back(Make(fused(k) ? kForwardBackward : kBackward, k));
  });
  return order;
}

struct NamedOrder {
  std::string_view name;
  StageOrder (*make)(const ScheduleShape&, int);
};
constexpr NamedOrder kOrders[] = {{"1f1b", OneF1B},
                                  {"gpipe", GPipe},
                                  {"interleaved", Interleaved},
                                  {"early_recompute", EarlyRecompute}};

Error TooMany(std::int64_t instructions) {
  return InvalidArgument(
      fmt::format("the schedule has {} instructions, more than the {} that we plan for: "
                  "plan for fewer microbatches",
                  instructions, kMostInstructions));
}

Status CheckShape(const NamedOrder& order, const ScheduleShape& shape) {
  for (const auto& [what, number] :
       {std::pair("stages", shape.stages), std::pair("microbatches", shape.microbatches),
        std::pair("chunks", shape.chunks)}) {
    if (number < 1)
      return InvalidArgument(
          fmt::format("{}: {} is too few, a pipeline has at least 1", what, number));
    if (number > kMostInstructions) return TooMany(number);
  }
  const bool interleaved = order.make == Interleaved;
  if (!interleaved && shape.chunks > 1)
    return InvalidArgument(
        fmt::format("chunks: a {} schedule has one chunk for each stage, not {}; "
                    "interleaved has more",
                    order.name, shape.chunks));
  if (interleaved && shape.microbatches % shape.stages != 0)
    return InvalidArgument(
        fmt::format("microbatches: an interleaved schedule issues them in groups of as "
                    "many as there are stages: {} is not a multiple of {}",
                    shape.microbatches, shape.stages));
  const std::int64_t instructions =
      std::int64_t{3} * shape.stages * shape.microbatches * shape.chunks;
  if (shape.microbatches > kMostInstructions / shape.stages / shape.chunks ||
      instructions / 3 * 2 > kMostInstructions)
    return TooMany(std::int64_t{2} * shape.stages * shape.microbatches * shape.chunks);
  return Ok();
}

std::string ShortName(std::string_view name) {
  if (name == kForward) return "F";
  if (name == kBackward) return "B";
  if (name == kForwardBackward) return "FB";
  if (name == kRecomputation) return "R";
  return std::string(name) + ':';
}

std::string_view LongName(std::string_view letters) {
  if (letters == "F") return kForward;
  if (letters == "B") return kBackward;
  if (letters == "FB") return kForwardBackward;
  if (letters == "R") return kRecomputation;
  return {};
}

Result<int> Index(std::string_view text) {
  ZEUS_TRY(const std::int64_t number, ParseInteger(text));
  if (number < 0 || number >= kMostInstructions)
    return InvalidArgument(
        fmt::format("{} is not between 0 and {}", number, kMostInstructions - 1));
  return static_cast<int>(number);
}

// Parses "F3", "F3.1", "name:3", "name:3.1" or "name".
Result<Instruction> ParseInstruction(std::string_view word) {
  const std::size_t colon = word.find(':');
  const std::size_t digits =
      colon == std::string_view::npos ? word.find_first_of("0123456789") : colon + 1;
  const std::string_view letters = word.substr(0, digits);
  const std::string_view known = LongName(letters);
  if (colon == std::string_view::npos && known.empty()) {
    if (digits == std::string_view::npos) return Make(word, 0);
    return InvalidArgument(
        "is not an instruction: write F3, B3, FB3, R3, F3.1 for chunk 1, or name:3");
  }
  Instruction instruction;
  instruction.name =
      colon == std::string_view::npos ? std::string(known) : std::string(word.substr(0, colon));
  if (instruction.name.empty() || digits >= word.size())
    return InvalidArgument("lacks its microbatch");
  std::string_view number = word.substr(digits);
  const std::size_t point = number.find('.');
  ZEUS_TRY(instruction.microbatch, Index(number.substr(0, point)));
  if (point != std::string_view::npos) {
    ZEUS_TRY(instruction.chunk, Index(number.substr(point + 1)));
  }
  return instruction;
}

Result<StageOrder> ParseLine(std::size_t line, std::string_view text) {
  StageOrder order;
  constexpr std::string_view kBlanks = " \t,\r";
  for (;;) {
    text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
    if (text.empty()) return order;
    const std::string_view word = text.substr(0, text.find_first_of(kBlanks));
    Result<Instruction> instruction = ParseInstruction(word);
    if (!instruction.ok())
      return InvalidArgument(
          fmt::format("line {}: {}: {}", line, Quote(word), instruction.error().message));
    order.push_back(std::move(instruction).value());
    text.remove_prefix(word.size());
  }
}

}  // namespace

Result<Schedule> MakeSchedule(std::string_view name, const ScheduleShape& shape) {
  const auto* const order = std::ranges::find(kOrders, name, &NamedOrder::name);
  if (order == std::end(kOrders))
    return InvalidArgument(
        fmt::format("{} is not a schedule: there are 1f1b, gpipe, interleaved and "
                    "early_recompute, and files with a line for each stage",
                    Quote(name)));
  ZEUS_RETURN_IF_ERROR(CheckShape(*order, shape));
  Schedule schedule{
      .name = std::string(name), .microbatches = shape.microbatches, .chunks = shape.chunks};
  for (int stage = 0; stage < shape.stages; ++stage)
    schedule.stages.push_back(order->make(shape, stage));
  return schedule;
}

Result<Schedule> ParseSchedule(std::string_view text) {
  Schedule schedule{.name = "custom"};
  std::int64_t instructions = 0;
  for (std::size_t line = 1; !text.empty(); ++line) {
    const std::size_t end = text.find('\n');
    std::string_view content = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    content = Trim(content.substr(0, content.find('#')));
    if (content.empty()) continue;
    ZEUS_TRY(StageOrder order, ParseLine(line, content));
    if (order.empty())
      return InvalidArgument(
          fmt::format("line {} has commas and no instruction: remove it, or write the stage's "
                      "instructions, such as F0 B0",
                      line));
    instructions += static_cast<std::int64_t>(order.size());
    if (instructions > kMostInstructions) return TooMany(instructions);
    for (const Instruction& instruction : order) {
      schedule.microbatches = std::max(schedule.microbatches, instruction.microbatch + 1);
      schedule.chunks = std::max(schedule.chunks, instruction.chunk + 1);
    }
    schedule.stages.push_back(std::move(order));
  }
  if (schedule.stages.empty())
    return InvalidArgument("the schedule is empty: it needs a line of instructions for each stage");
  return schedule;
}

std::string ToText(const Schedule& schedule) {
  std::string text;
  for (const StageOrder& order : schedule.stages) {
    for (const Instruction& instruction : order) {
      if (&instruction != order.data()) text += ' ';
      text += fmt::format("{}{}", ShortName(instruction.name), instruction.microbatch);
      if (instruction.chunk > 0) text += fmt::format(".{}", instruction.chunk);
    }
    text += '\n';
  }
  return text;
}

}  // namespace zeus::pipeline
