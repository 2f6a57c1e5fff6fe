#pragma once

#include <filesystem>
#include <string>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/report/figure.h"

// Reports in all forms in which people and programs read them. Every picture, page and table of a
// report that Zeus shows comes from here.
namespace zeus::report {

// The data of the page; docs/formats.md describes the fields.
Json ToJson(const Report& report);

// One self-contained page that loads nothing: the bundle of web/ with the data in it. A program
// that was built without node has no bundle and writes ToPlainHtml() instead.
Result<std::string> ToHtml(const Report& report);
// The same content without interaction: tables, and figures as SVG. Light or dark as the reader
// prefers.
std::string ToPlainHtml(const Report& report);

// A drawing that stands alone; light or dark as the reader prefers.
std::string ToSvg(const Figure& figure);

// Comma-separated values with a header; a figure has one row per point (panel, series, x, y, low,
// high, label).
std::string ToCsv(const Figure& figure);
std::string ToCsv(const Table& table);

// A table for terminals, `width` columns wide.
std::string ToText(const Table& table, int width);
// The tables of a report, then its findings and remarks.
std::string ToText(const Report& report, int width);

// A plot for terminals of the first two series of a panel, as lines with points. Ends in the title
// of the x axis and a newline; empty for fewer than two points.
enum class Glyphs { kAscii, kUnicode };
std::string ToTextPlot(const Panel& panel, Glyphs glyphs);

// Writes FOLDER/ID.svg, ID.csv (and ID.png, where rsvg-convert is found) for each figure and table.
// Creates the folder. Returns a sentence about what was left out and why, or "".
Result<std::string> WriteFiles(const Report& report, const std::filesystem::path& folder);

}  // namespace zeus::report
