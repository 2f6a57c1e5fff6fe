#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// As much JSON as code inside Slurm's daemons needs, without a library: finding values in an
// answer of zeusd, and writing texts. Input is not trusted: nothing is read beyond its end, and
// nesting is followed 64 levels deep.
namespace zeus::slurm {

// The text of the value below these names: {"steps", "0", "energy_joules"}. nullopt where there is
// none, or the text is malformed on the way to it.
std::optional<std::string_view> FindJson(std::string_view json,
                                         std::initializer_list<std::string_view> names);
// A finite number; nullopt also for null.
std::optional<double> FindJsonNumber(std::string_view json,
                                     std::initializer_list<std::string_view> names);
// A text without escapes; those with some are not needed here, and are nullopt.
std::optional<std::string> ToPlainText(std::string_view json);
// The elements of an array, until it ends or is malformed.
std::vector<std::string_view> JsonElements(std::string_view json);

// The text in quotation marks: 200 bytes of it at most. Bytes that JSON or zeusd would refuse
// become question marks.
std::string ToJsonText(std::string_view text);

}  // namespace zeus::slurm
