#pragma once

#include "studies/paper/study.h"
#include "zeus/report/figure.h"

// The figures of the paper that come from replays.
namespace zeus::replay::paper {

report::Figure LastFiveFigure(const Study& study);       // Figure 6.
report::Figure RegretFigure(const Study& study);         // Figure 7.
report::Figure SearchPathFigure(const Study& study);     // Figure 8.
report::Figure BetaFigure(const Study& study);           // Figure 12.
report::Figure AblationFigure(const Study& study);       // Figure 13.
report::Figure GpuFigure(const Study& study);            // Figure 14.
report::Figure RegretsFigure(const Study& study);        // Figure 19.
report::Figure ZeusPathsFigure(const Study& study);      // Figure 20.
report::Figure GridPathsFigure(const Study& study);      // Figure 21.
report::Figure EtaFigure(const Study& study);            // Figure 22.
report::Figure LastFiveByGpuFigure(const Study& study);  // Figure 23.
report::Table SettingsTable(const Study& study);         // The numbers of figure 23, and regrets.

}  // namespace zeus::replay::paper
