#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/carbon/intensity_source.h"

namespace zeus {

// A value over time that holds from each row to the next: intensities and prices as grids and
// exchanges publish them. The last row holds as long as the row before it did (an hour when it is
// alone). Where there is no value, the nearest one up to `reach` away is used, with a note; beyond
// it there is none: yesterday's wind says little about next week. Not thread-safe while it changes.
class StepSeries {
 public:
  struct Row {
    WallTime time;
    double value;
    bool estimated = false;
  };

  struct Limits {
    std::chrono::microseconds hold =
        std::chrono::microseconds::max();  // The longest time that a row holds.
    std::chrono::microseconds reach = std::chrono::hours(24);
  };

  // Rows may come in any order; of two with the same time the later one in the list counts.
  explicit StepSeries(const std::vector<Row>& rows, Limits limits);
  explicit StepSeries(const std::vector<Row>& rows) : StepSeries(rows, Limits()) {}

  struct Step {
    double value;
    ValidSpan valid;
    bool estimated;
    std::string note;  // Not empty when the value is only the nearest one.
  };
  // kNotFound when there is no row within reach.
  Result<Step> At(WallTime time) const;

  // Newer rows replace older ones of the same time.
  void Add(const std::vector<Row>& rows);
  // Forgets rows from before `time`.
  void DropBefore(WallTime time);

  const std::vector<Row>& rows() const { return rows_; }

 private:
  using Iterator = std::vector<Row>::const_iterator;
  WallTime StepEnd(Iterator row) const;
  Error NothingFor(WallTime time) const;

  std::vector<Row> rows_;  // By time, all different.
  Limits limits_;
};

// A CSV file with a header "time,<column>" and rows of a time (ParseWallTime) and a number. Empty
// lines and lines that begin with # are skipped. An error names file and line.
struct CsvSeries {
  std::string column;
  StepSeries series;
};
enum class CsvValues { kAny, kNotNegative };
Result<CsvSeries> ParseCsvSeries(std::string_view text, const std::string& name, CsvValues values);
Result<CsvSeries> LoadCsvSeries(const std::filesystem::path& path, CsvValues values);

// Intensities from a CSV file with the header time,grams_per_kwh.
class IntensitySeries final : public IntensitySource {
 public:
  static Result<std::unique_ptr<IntensitySeries>> Load(const std::filesystem::path& path);

  IntensitySeries(std::string name, StepSeries series)
      : name_(std::move(name)), series_(std::move(series)) {}
  Result<IntensityReading> At(WallTime time) override;

 private:
  const std::string name_;
  const StepSeries series_;
};

}  // namespace zeus
