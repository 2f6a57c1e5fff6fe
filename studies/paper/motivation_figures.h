#pragma once

#include <span>
#include <vector>

#include "zeus/replay/replay_job.h"
#include "zeus/report/figure.h"

// The figures and tables of the paper that follow from the traces alone.
namespace zeus::replay::paper {

// The jobs of one GPU model.
using JobsOfGpu = std::vector<ReplayJob>;

report::Table WorkloadTable(std::span<const ReplayJob> jobs);        // Table 1.
report::Table GpuTable(std::span<const JobsOfGpu> gpus);             // Table 2.
report::Table SweepTable(std::span<const JobsOfGpu> gpus);           // The numbers of figure 15.
report::Figure SavingsFigure(std::span<const ReplayJob> jobs);       // Figure 1.
report::Figure TradeoffFigure(const ReplayJob& job);                 // Figure 2.
report::Figure BatchSizeFigure(const ReplayJob& job);                // Figure 5.
report::Figure EtaFrontFigure(const ReplayJob& job);                 // Figure 11.
report::Figure SavingsByGpuFigure(std::span<const JobsOfGpu> gpus);  // Figure 15.
report::Figure TradeoffsFigure(std::span<const ReplayJob> jobs);     // Figure 16.
report::Figure BatchSizesFigure(std::span<const ReplayJob> jobs);    // Figure 17.
report::Figure LimitsFigure(std::span<const ReplayJob> jobs);        // Figure 18.

}  // namespace zeus::replay::paper
