#include "zeus/optimizer/pipeline/reference_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <string>
#include <utility>

#include "zeus/base/text.h"
#include "zeus/optimizer/pipeline/plan.h"
#include "zeus/optimizer/pipeline/point_choice.h"
#include "zeus/optimizer/pipeline/schedule.h"

namespace zeus::pipeline {
namespace {

// Compares clocks to the nearest megahertz, since files hold whole megahertz.
bool IsSameClock(Hertz a, Hertz b) { return std::abs(a.ToMega() - b.ToMega()) < 0.5; }

Result<int> PointAt(const ComputationKind& kind, Hertz clock) {
  const auto found = std::ranges::find_if(kind.points, [clock](const OperatingPoint& point) {
    return IsSameClock(point.clock, clock);
  });
  if (found != kind.points.end()) return static_cast<int>(found - kind.points.begin());
  if (kind.points.size() == 1) return 0;  // Does not depend on the clock.
  return InvalidArgument(
      fmt::format("stage {}: {} was not measured at {} MHz: take the profile that the "
                  "schedule was made from",
                  kind.stage, Printable(kind.instruction), clock.ToMega()));
}

// Sets the points of one stage's computations.
Status ChooseStage(const Problem& problem, int stage, const RankClocks& rank,
                   std::vector<int>& choice) {
  const std::vector<int>& order = problem.stage_order[static_cast<std::size_t>(stage)];
  if (rank.size() != order.size())
    return InvalidArgument(
        fmt::format("the schedule of stage {} has {} instructions and the pipeline {}: "
                    "give the microbatches it was made for",
                    stage, rank.size(), order.size()));
  Hertz clock{};
  for (std::size_t i = 0; i < order.size(); ++i) {
    const ComputationKind& kind = problem.Kind(order[i]);
    const auto at = static_cast<std::size_t>(order[i]);
    if (rank[i].first != kind.instruction)
      return InvalidArgument(
          fmt::format("instruction {} of stage {} is {} in the schedule and {} in the "
                      "pipeline",
                      i, stage, Quote(rank[i].first), Quote(kind.instruction)));
    if (rank[i].second > Hertz()) clock = rank[i].second;
    if (clock == Hertz()) continue;  // No clock was set yet: the computation keeps the highest.
    ZEUS_TRY(choice[at], PointAt(kind, clock));
  }
  return Ok();
}

}  // namespace

Result<PipelinePlan> EvaluateReference(const Problem& problem, const std::vector<RankClocks>& ranks,
                                       Seconds latency) {
  if (static_cast<int>(ranks.size()) != problem.stages)
    return InvalidArgument(
        fmt::format("the schedule has lists for {} stages and the pipeline has {}: they "
                    "must agree",
                    ranks.size(), problem.stages));
  std::vector<int> choice = HighestClockChoice(problem);
  for (int stage = 0; stage < problem.stages; ++stage)
    ZEUS_RETURN_IF_ERROR(
        ChooseStage(problem, stage, ranks[static_cast<std::size_t>(stage)], choice));
  return MakePlan(problem, choice, latency);
}

namespace {

constexpr double kHighestMegahertz = 1e6;
constexpr std::size_t kLongestName = 200;

// Reads exactly the three levels of the file, without recursion or expressions.
class ReferenceScheduleReader {
 public:
  explicit ReferenceScheduleReader(std::string_view text) : text_(text) {}

  Result<std::vector<RankClocks>> ReadFile() {
    std::vector<RankClocks> ranks;
    ZEUS_TRY(const char closing, Open("a list of ranks"));
    while (!Skip(closing)) {
      ZEUS_TRY(RankClocks rank, ReadRank());
      ranks.push_back(std::move(rank));
      ZEUS_RETURN_IF_ERROR(EndElement(closing));
    }
    SkipBlanks();
    if (at_ != text_.size()) return Unexpected("nothing but comments after the list");
    return ranks;
  }

 private:
  Result<RankClocks> ReadRank() {
    RankClocks rank;
    ZEUS_TRY(const char closing, Open("a rank's list"));
    while (!Skip(closing)) {
      ZEUS_TRY(auto instruction, ReadInstruction());
      rank.push_back(std::move(instruction));
      ZEUS_RETURN_IF_ERROR(EndElement(closing));
    }
    return rank;
  }

  Result<std::pair<std::string, Hertz>> ReadInstruction() {
    ZEUS_TRY(const char closing, Open("(\"name\", MHz)"));
    ZEUS_TRY(std::string name, ReadName());
    if (!Skip(',')) return Unexpected("a comma and the clock in MHz");
    ZEUS_TRY(const Hertz clock, ReadClock());
    Skip(',');
    if (!Skip(closing)) return Unexpected(fmt::format("'{}'", closing));
    return std::pair(std::move(name), clock);
  }

  Result<std::string> ReadName() {
    SkipBlanks();
    const char quote = Peek();
    if (quote != '"' && quote != '\'')
      return Unexpected("an instruction's name in quotation marks");
    const std::size_t end = text_.find(quote, at_ + 1);
    const std::string_view name =
        text_.substr(at_ + 1, end == text_.npos ? text_.npos : end - at_ - 1);
    for (const char letter : name.substr(0, kLongestName))
      if (static_cast<unsigned char>(letter) < ' ' || letter == '\\')
        return Unexpected("a name of plain characters on one line");
    if (end == text_.npos) return Unexpected("a name with its closing quotation mark");
    if (name.empty() || name.size() > kLongestName)
      return Unexpected(fmt::format("a name of 1 to {} characters", kLongestName));
    at_ = end + 1;
    return std::string(name);
  }

  Result<Hertz> ReadClock() {
    SkipBlanks();
    const std::size_t length =
        std::min(text_.find_first_not_of("0123456789.eE+-", at_), text_.size()) - at_;
    const Result<double> megahertz = ParseDouble(text_.substr(at_, length));
    if (!megahertz.ok() || !(megahertz.value() >= 0) || megahertz.value() > kHighestMegahertz)
      return Unexpected("a clock in MHz, 0 to leave it as it is");
    at_ += length;
    return Hertz::FromMega(megahertz.value());
  }

  // Accepts a Python list or tuple, which hold the same; returns the bracket that closes it.
  Result<char> Open(std::string_view what) {
    if (++entries_ > kMostInstructions + 1)
      return Unexpected(fmt::format("at most {} instructions", kMostInstructions));
    if (Skip('[')) return ']';
    if (Skip('(')) return ')';
    return Unexpected(what);
  }

  Status EndElement(char closing) {
    if (Skip(',')) return Ok();
    SkipBlanks();
    if (Peek() == closing) return Ok();
    return Unexpected(fmt::format("a comma or '{}'", closing));
  }

  bool Skip(char expected) {
    SkipBlanks();
    if (Peek() != expected) return false;
    ++at_;
    return true;
  }

  void SkipBlanks() {
    while (at_ < text_.size()) {
      if (text_[at_] == '#')
        at_ = std::min(text_.find('\n', at_), text_.size());
      else if (std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos)
        ++at_;
      else
        return;
    }
  }

  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  Error Unexpected(std::string_view expected) const {
    const std::string_view before = text_.substr(0, at_);
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0.
    const std::string found = at_ < text_.size() ? Quote(text_.substr(at_, 1)) : "the end";
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("line {}, column {}: {} where the schedule needs {}", line,
                             at_ - line_start + 1, found, expected)};
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int entries_ = 0;
};

// Replaces characters that would break out of a Python string: names in a user's schedule may hold
// any characters, and the file is read by a Python interpreter.
std::string PlainName(std::string name) {
  for (char& letter : name)
    if (static_cast<unsigned char>(letter) < ' ' || letter == '"' || letter == '\\') letter = '_';
  return name;
}

}  // namespace

Result<std::vector<RankClocks>> ParseReferenceSchedule(std::string_view text) {
  return ReferenceScheduleReader(text).ReadFile();
}

std::string ToReferenceSchedule(const PipelinePlan& plan) {
  std::string text = "[\n";
  const auto out = std::back_inserter(text);
  for (const std::vector<PlannedInstruction>& stage : plan.stages) {
    text += "[";
    for (const PlannedInstruction& planned : stage)
      fmt::format_to(out, "(\"{}\", {}), ", PlainName(planned.instruction),
                     std::lround(planned.clock.ToMega()));
    text += "],\n";
  }
  text += "]\n";
  fmt::format_to(out, "# Iteration time: {} s, within {} s\n", plan.time.count(),
                 plan.deadline.count());
  fmt::format_to(out, "# Energy including blocking: {} J until {} s\n", plan.energy.value(),
                 plan.waits_until.count());
  fmt::format_to(out, "# No plan within the deadline takes less than {} J\n", plan.bound.value());
  return text;
}

}  // namespace zeus::pipeline
