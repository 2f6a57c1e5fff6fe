#pragma once

#include <string>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/device/node.h"

// GPUs as the command line names them.
namespace zeus::cli {

// Parses "0,1" or "gpu:0,gpu:1" into numbers, without repetitions. kInvalidArgument names --gpus.
Result<std::vector<unsigned>> ParseGpus(const std::string& text);

// Checks that the node has all GPUs with these numbers. kNotFound names the missing one.
Status CheckGpus(const Node& node, const std::vector<unsigned>& numbers);

}  // namespace zeus::cli
