#include "zeus/replay/input/row_problems.h"

#include <fmt/format.h>

#include "zeus/base/json.h"
#include "zeus/base/text.h"

namespace zeus::replay {
namespace {

// Kinds may contain numbers from the input, so their count needs a limit.
constexpr std::size_t kMostKinds = 20;
constexpr std::string_view kOtherKinds = "other problems";

std::string Place(const RowProblem& problem) {
  return fmt::format("{}:{}: {}", Printable(problem.file), problem.line, problem.reason);
}

}  // namespace

void RowProblems::Add(std::string_view file, std::int64_t line, std::string_view kind,
                      std::string_view value, RowFate fate) {
  ++(fate == RowFate::kLeftOut ? left_out_ : put_right_);
  const auto known = kinds_.find(kind);
  if (known != kinds_.end()) {
    ++known->second;
  } else {
    ++kinds_[std::string(kinds_.size() < kMostKinds ? kind : kOtherKinds)];
  }
  if (first_.size() >= kept_) return;
  first_.push_back(
      {.file = std::string(file),
       .line = line,
       .reason = value.empty() ? std::string(kind) : fmt::format("{}: {}", kind, Quote(value))});
}

void RowProblems::Add(const RowProblems& others) {
  left_out_ += others.left_out_;
  put_right_ += others.put_right_;
  for (const auto& [kind, rows] : others.kinds_) kinds_[kind] += rows;
  for (const RowProblem& problem : others.first_)
    if (first_.size() < kept_) first_.push_back(problem);
}

void RowProblems::AddFile(const std::string& file, const RowProblems& of_file) {
  if (files_.insert(file).second) Add(of_file);
}

std::string RowProblems::Summary() const {
  if (empty()) return {};
  std::string text = fmt::format("{} rows left out, {} put right\n", left_out_, put_right_);
  for (const auto& [kind, rows] : kinds_) text += fmt::format("  {} rows: {}\n", rows, kind);
  for (const RowProblem& problem : first_) text += fmt::format("  {}\n", Place(problem));
  const auto named = static_cast<std::int64_t>(first_.size());
  if (named < left_out_ + put_right_)
    text += fmt::format("  and {} more\n", left_out_ + put_right_ - named);
  return text;
}

Json RowProblems::ToJson() const {
  Json kinds = Json::object();
  for (const auto& [kind, rows] : kinds_) kinds[kind] = rows;
  Json first = Json::array();
  for (const RowProblem& problem : first_)
    first.push_back(
        {{"file", Printable(problem.file)}, {"line", problem.line}, {"reason", problem.reason}});
  return {{"rows_left_out", left_out_},
          {"rows_put_right", put_right_},
          {"kinds", std::move(kinds)},
          {"first", std::move(first)}};
}

Status RowProblems::Refuse() const {
  if (empty()) return Ok();
  const std::int64_t others = left_out_ + put_right_ - 1;
  const std::string more = others > 0 ? fmt::format(" (and {} more)", others) : "";
  return Error{ErrorCode::kInvalidArgument,
               (first_.empty() ? "rows have problems" : Place(first_.front())) + more};
}

}  // namespace zeus::replay
