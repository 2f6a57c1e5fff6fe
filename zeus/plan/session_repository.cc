#include "zeus/plan/session_repository.h"

#include <fmt/format.h>

namespace zeus {

Status CheckBeside(const SessionRank& rank, const SessionRank& known) {
  if (rank.rank == known.rank) {
    if (rank == known) return Ok();
    return Error{ErrorCode::kConflict,
                 fmt::format("rank: {} has registered as somebody else", rank.rank)};
  }
  if (rank.data_rank != known.data_rank || rank.pipeline_rank != known.pipeline_rank ||
      rank.tensor_rank != known.tensor_rank)
    return Ok();
  return Error{
      ErrorCode::kConflict,
      fmt::format("rank: {} cannot be dp_rank {}, pp_rank {}, tp_rank {}: rank {} is", rank.rank,
                  rank.data_rank, rank.pipeline_rank, rank.tensor_rank, known.rank)};
}

}  // namespace zeus
