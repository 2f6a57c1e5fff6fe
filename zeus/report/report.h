#pragma once

#include <filesystem>
#include <string>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/report/figure.h"

namespace zeus::report {

// What the page draws from: docs/formats.md.
Json ToJson(const Report& report);

// One self-contained page: the web bundle with the data in it. kNotSupported when the program was
// built without the bundle.
Result<std::string> ToHtml(const Report& report);

// A drawing that stands alone; light or dark as the reader prefers.
std::string ToSvg(const Figure& figure);

// With a header; one row per point of a figure (panel, series, x, y, low, high, label).
std::string ToCsv(const Figure& figure);
std::string ToCsv(const Table& table);

// For terminals, `width` columns wide.
std::string ToText(const Table& table, int width);
// The tables, then findings and remarks.
std::string ToText(const Report& report, int width);

// FOLDER/ID.svg, ID.csv (and ID.png, where rsvg-convert is found) for each figure and table. Makes
// the folder. Returns what was left out, with the reason, empty if nothing was.
Result<std::string> WriteFiles(const Report& report, const std::filesystem::path& folder);

}  // namespace zeus::report
