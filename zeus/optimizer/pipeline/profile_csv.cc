#include "zeus/optimizer/pipeline/profile_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "zeus/base/csv.h"
#include "zeus/base/text.h"

namespace zeus::pipeline {
namespace {

enum Column : std::size_t { kStage, kInstruction, kFrequency, kTime, kEnergy, kDpRank, kTpRank };
constexpr std::array<std::string_view, 7> kNames = {"stage",  "instruction", "frequency", "time",
                                                    "energy", "dp_rank",     "tp_rank"};
constexpr std::size_t kRequired = 5;
constexpr int kMostStages = 1 << 16;

Error AtLine(std::size_t line, std::string_view why) {
  return Error{ErrorCode::kInvalidArgument, fmt::format("line {}: {}", line, why)};
}

using Fields = std::vector<std::string_view>;

bool IsControlCharacter(char c) { return std::iscntrl(static_cast<unsigned char>(c)) != 0; }

// The places of the known columns.
struct Header {
  std::array<std::optional<std::size_t>, kNames.size()> places{};
  std::size_t width = 0;
};

Result<Header> ReadHeader(std::size_t line, const Fields& fields) {
  Header header;
  header.width = fields.size();
  for (std::size_t column = 0; column < kNames.size(); ++column) {
    const auto found = std::ranges::find(fields, kNames[column]);
    if (found != fields.end())
      header.places[column] = static_cast<std::size_t>(found - fields.begin());
    else if (column < kRequired)
      return AtLine(line, fmt::format("the header lacks the column {}: it must name stage, "
                                      "instruction, frequency, time and energy",
                                      kNames[column]));
  }
  return header;
}

// One row: an operating point as one rank measured it.
struct Row {
  int stage = 0;
  std::string instruction{};
  OperatingPoint point{};
  std::pair<int, int> rank{};  // Data parallel, tensor parallel.
};

class RowReader {
 public:
  RowReader(const Header& header, std::size_t line, const Fields& fields)
      : header_(header), line_(line), fields_(fields) {}

  Result<Row> Read() const {
    if (fields_.size() != header_.width)
      return AtLine(line_,
                    fmt::format("has {} fields, the header {}", fields_.size(), header_.width));
    Row row;
    ZEUS_TRY(row.stage, Rank(kStage));
    row.instruction = Field(kInstruction);
    if (std::ranges::any_of(row.instruction, IsControlCharacter))
      return AtLine(line_, "instruction: has a control character");
    ZEUS_TRY(const double mhz, Number(kFrequency));
    ZEUS_TRY(const double seconds, Number(kTime));
    ZEUS_TRY(const double joules, Number(kEnergy));
    row.point = {Hertz::FromMega(mhz), Seconds(seconds), Joules(joules)};
    const Status checked = Check(row.point);
    if (!checked.ok()) return AtLine(line_, checked.error().message);
    ZEUS_TRY(row.rank.first, Rank(kDpRank));
    ZEUS_TRY(row.rank.second, Rank(kTpRank));
    return row;
  }

 private:
  std::string_view Field(Column column) const { return fields_[*header_.places[column]]; }

  Result<double> Number(Column column) const {
    const Result<double> number = ParseDouble(Field(column));
    if (!number.ok())
      return AtLine(line_, fmt::format("{}: {}", kNames[column], number.error().message));
    return number.value();
  }
  // Returns 0 when the file has no such column.
  Result<int> Rank(Column column) const {
    if (!header_.places[column]) return 0;
    const Result<std::int64_t> number = ParseInteger(Field(column));
    if (!number.ok())
      return AtLine(line_, fmt::format("{}: {}", kNames[column], number.error().message));
    if (number.value() < 0 || number.value() >= kMostStages)
      return AtLine(line_, fmt::format("{}: {} is not between 0 and {}", kNames[column],
                                       number.value(), kMostStages - 1));
    return static_cast<int>(number.value());
  }

  const Header& header_;
  const std::size_t line_;
  const Fields& fields_;
};

// The rows of all ranks for one operating point of one instruction.
using Ranks = std::map<std::pair<int, int>, OperatingPoint>;
using Kind = std::pair<int, std::string>;
using Table = std::map<Kind, std::map<double, Ranks, std::greater<>>>;  // By clock, falling.

OperatingPoint Together(double mhz, const Ranks& ranks) {
  OperatingPoint together{.clock = Hertz::FromMega(mhz)};
  std::map<int, int> replicas;
  for (const auto& [rank, point] : ranks) {
    together.time = std::max(together.time, point.time);
    together.energy += point.energy;
    ++replicas[rank.first];
  }
  together.energy = together.energy / static_cast<double>(replicas.size());
  return together;
}

Result<PipelineProfile> ToProfile(const Table& table) {
  PipelineProfile profile;
  for (const auto& [kind, clocks] : table) {
    InstructionProfile instruction{.stage = kind.first, .instruction = kind.second};
    const std::size_t ranks = clocks.begin()->second.size();
    for (const auto& [mhz, points] : clocks) {
      if (points.size() != ranks)
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("stage {}, {} at {} MHz has rows of {} ranks and at {} MHz of {}: "
                                 "every rank must be measured at every clock",
                                 kind.first, Quote(kind.second), clocks.begin()->first, ranks, mhz,
                                 points.size())};
      instruction.points.push_back(Together(mhz, points));
    }
    profile.stages = std::max(profile.stages, kind.first + 1);
    profile.instructions.push_back(std::move(instruction));
  }
  ZEUS_RETURN_IF_ERROR(Check(profile));
  return profile;
}

}  // namespace

Result<PipelineProfile> ParseProfileCsv(std::string_view text) {
  CsvText csv(text);
  std::optional<Header> header;
  Table table;
  for (;;) {
    const Result<bool> found = csv.Next();
    if (!found.ok()) return AtLine(csv.line(), found.error().message);
    if (!found.value()) break;
    if (!header) {
      ZEUS_TRY(header, ReadHeader(csv.line(), csv.fields()));
      continue;
    }
    ZEUS_TRY(Row row, RowReader(*header, csv.line(), csv.fields()).Read());
    const double mhz = row.point.clock.ToMega();
    Ranks& ranks = table[{row.stage, std::move(row.instruction)}][mhz];
    if (!ranks.emplace(row.rank, row.point).second)
      return AtLine(csv.line(),
                    fmt::format("{} MHz stands there twice for this instruction and rank", mhz));
  }
  if (table.empty())
    return Error{ErrorCode::kInvalidArgument,
                 "the profile has no rows: it needs a header and a row for each operating point"};
  return ToProfile(table);
}

std::string ToCsv(const PipelineProfile& profile) {
  std::string csv = "stage,instruction,frequency,time,energy\n";
  for (const InstructionProfile& instruction : profile.instructions) {
    for (const OperatingPoint& point : instruction.points)
      csv += fmt::format("{},{},{},{},{}\n", instruction.stage, CsvField(instruction.instruction),
                         point.clock.ToMega(), point.time.count(), point.energy.value());
  }
  return csv;
}

}  // namespace zeus::pipeline
