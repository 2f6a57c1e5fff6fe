#pragma once

namespace zeus {

// The place of a process in a job that is data, pipeline and tensor parallel.
struct PipelineRank {
  int dp_rank = 0;  // Replica of the pipeline.
  int pp_rank = 0;  // Stage of the pipeline.
  int tp_rank = 0;  // Part of the stage.
  int dp_degree = 1;
  int pp_degree = 1;
  int tp_degree = 1;
};

}  // namespace zeus
