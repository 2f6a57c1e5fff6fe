#pragma once

#include <optional>
#include <string>
#include <vector>

#include "studies/paper/claims.h"
#include "studies/paper/drift.h"
#include "studies/paper/study.h"
#include "zeus/base/json_fwd.h"
#include "zeus/replay/cluster/cluster_report.h"
#include "zeus/report/figure.h"

namespace zeus::replay::paper {

// Our replays of zeus beside those of the reference's simulator (job_comparison.h).

// Each figure of each setting that the reference is known for, and how far ours is from it.
report::Table ReferenceTable(const Study& study);

// How many of them agree.
Claim ReferenceClaim(const Study& study);

// The paper, reproduced.
struct Reproduction {
  std::string source{};  // The inputs that were replayed.
  int seeds = 0;
  Study study{};
  ClusterComparison cluster{};       // On the usual GPU.
  std::vector<DriftCourse> drift{};  // Also on the usual GPU.
};

std::vector<Claim> AllClaims(const Reproduction& reproduction);

// docs/formats.md.
Json ToJson(const Reproduction& reproduction);

// Claims, tables and figures, in the order of the paper.
report::Report ToReport(const Reproduction& reproduction);

}  // namespace zeus::replay::paper
