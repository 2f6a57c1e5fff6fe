#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/device/node.h"

// Parsing of lists on the command line.
namespace zeus::cli {

// Splits "a, b" into {"a", "b"}; an empty text gives one empty part.
std::vector<std::string_view> SplitAtCommas(std::string_view text);

// Parses "0,1" or "gpu:0,gpu:1" into numbers, without repetitions. kInvalidArgument names --gpus.
Result<std::vector<unsigned>> ParseGpus(const std::string& text);

// Checks that the node has all GPUs with these numbers. kNotFound names the missing one.
Status CheckGpus(const Node& node, const std::vector<unsigned>& numbers);

}  // namespace zeus::cli
