#pragma once

namespace zeus {

// Where a process stands in a job that is data, pipeline and tensor parallel.
struct PipelineRank {
  int dp_rank = 0;  // Which replica of the pipeline.
  int pp_rank = 0;  // Which stage.
  int tp_rank = 0;  // Which part of the stage.
  int dp_degree = 1;
  int pp_degree = 1;
  int tp_degree = 1;
};

}  // namespace zeus
