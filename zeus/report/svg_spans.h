#pragma once

#include <string>

#include "zeus/report/svg_marks.h"

namespace zeus::report {

// The spans of a series, each a box in its lane. Neighbours that are too narrow to be told apart
// are one box with the mean of their colours.
std::string SvgSpans(const Series& series, const MarkPlace& place);

}  // namespace zeus::report
