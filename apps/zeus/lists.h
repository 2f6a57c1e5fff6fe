#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/device/node.h"

// Lists on the command line.
namespace zeus::cli {

// "a, b" is {"a", "b"}; an empty text is one empty part.
std::vector<std::string_view> SplitAtCommas(std::string_view text);

// "0,1" or "gpu:0,gpu:1": numbers as in "gpu:1", each once. kInvalidArgument names --gpus.
Result<std::vector<unsigned>> ParseGpus(const std::string& text);

// Whether the node has all of these GPUs, by number as in "gpu:1". kNotFound names the missing one.
Status CheckGpus(const Node& node, const std::vector<unsigned>& numbers);

}  // namespace zeus::cli
