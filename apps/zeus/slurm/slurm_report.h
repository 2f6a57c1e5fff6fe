#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"

// A job's energy as Slurm and zeusd know it, put together.
namespace zeus::cli {

// A line of sacct: the job ("12"), or one of its steps ("12.0", "12.batch").
struct AccountedLine {
  std::string id{};
  std::string name{};
  std::string user{};
  std::string partition{};
  std::string state{};
  std::string nodes{};
  std::optional<Seconds> elapsed{};
  std::optional<Joules> energy{};
  std::string comment{};  // AdminComment of the job.
};
// The columns that ParseAccounting() expects, for sacct -o.
inline constexpr std::string_view kAccountingColumns =
    "JobID,JobName,User,Partition,State,NodeList,ElapsedRaw,ConsumedEnergyRaw,AdminComment";
// Reads the output of sacct -nP, whose fields are separated by bars. kInvalidArgument names a line
// with too few.
Result<std::vector<AccountedLine>> ParseAccounting(std::string_view text);

// The part of a job on one node, as the node's zeusd books it.
struct NodeShare {
  std::string node{};
  Joules energy{};
  Joules sigma{};
};

// The comment of a job: {"zeus": {"joules": 1200.5, "sigma": 14, "limit_watts": 150, "nodes":
// {"n1": [1200.5, 14]}}}. Nodes that do not fit into 1 KiB are added up as "others": [nodes,
// joules, sigma]. What others have written beside "zeus" stays, unless it is no JSON object.
//
// The shares in a comment; those that were added up come last, without a name.
std::vector<NodeShare> SharesOfComment(std::string_view comment);
// The comment with this node's share in it, which replaces an earlier one.
std::string CommentWith(std::string_view comment, const NodeShare& share,
                        std::optional<Watts> limit);

// The share of a node from the daemon's record of the job. kInvalidArgument for another document.
Result<NodeShare> ShareOfRecord(const Json& record, const std::string& node);

// The report for people: the job, its steps, its nodes.
std::string ReportText(const std::vector<AccountedLine>& lines,
                       const std::vector<NodeShare>& nodes);
Json ReportJson(const std::vector<AccountedLine>& lines, const std::vector<NodeShare>& nodes);

}  // namespace zeus::cli
