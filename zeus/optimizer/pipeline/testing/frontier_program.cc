#include "zeus/optimizer/pipeline/testing/frontier_program.h"

#ifdef ZEUS_HAS_GLPK
#include <glpk.h>

#include <memory>
#endif

namespace zeus::pipeline {

#ifdef ZEUS_HAS_GLPK

namespace {

class Program {
 public:
  Program() { glp_term_out(GLP_OFF); }

  // Adds a variable from 0 to `most`; returns its number.
  int Add(double most, double price) {
    const int column = glp_add_cols(program_.get(), 1);
    glp_set_col_bnds(program_.get(), column, most > 0 ? GLP_DB : GLP_FX, 0, most);
    glp_set_obj_coef(program_.get(), column, price);
    return column;
  }

  // Requires that the weighted sum of these variables is at most `bound`.
  void Bound(const std::vector<std::pair<int, double>>& terms, double bound) {
    const int row = glp_add_rows(program_.get(), 1);
    glp_set_row_bnds(program_.get(), row, GLP_UP, 0, bound);
    std::vector<int> columns{0};
    std::vector<double> weights{0};
    for (const auto& [column, weight] : terms) {
      columns.push_back(column);
      weights.push_back(weight);
    }
    glp_set_mat_row(program_.get(), row, static_cast<int>(terms.size()), columns.data(),
                    weights.data());
  }

  std::optional<double> Minimum() {
    glp_set_obj_dir(program_.get(), GLP_MIN);
    glp_adv_basis(program_.get(), 0);
    if (glp_simplex(program_.get(), nullptr) != 0) return std::nullopt;
    if (glp_get_status(program_.get()) != GLP_OPT) return std::nullopt;
    return glp_get_obj_val(program_.get());
  }

 private:
  std::unique_ptr<glp_prob, void (*)(glp_prob*)> program_{glp_create_prob(), glp_delete_prob};
};

}  // namespace

bool HasLinearPrograms() { return true; }

std::optional<Joules> LeastEffectiveEnergy(const RandomProblem& random, Ticks time) {
  const auto bound = static_cast<double>(time);
  Program program;
  double fixed = 0;
  std::vector<int> begins;
  std::vector<std::vector<std::pair<int, double>>> ends;  // Begin, and every segment that is used.
  for (const ConvexCost& cost : random.costs.costs) {
    fixed += cost.at_longest.value() + random.costs.slope_unit * cost.SlopesAbove(cost.shortest());
    begins.push_back(program.Add(bound, 0));
    ends.push_back({{begins.back(), 1.0}});
    for (std::size_t k = 1; k < cost.times.size(); ++k)
      ends.back().emplace_back(
          program.Add(static_cast<double>(cost.times[k] - cost.times[k - 1]),
                      -random.costs.slope_unit * static_cast<double>(cost.slopes[k])),
          1.0);
  }
  const ComputationGraph& graph = random.problem.graph;
  for (int i = 0; i < graph.size(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    const auto shortest = static_cast<double>(random.costs.costs[at].shortest());
    program.Bound(ends[at], bound - shortest);
    for (const int next : graph.Successors(i)) {
      auto terms = ends[at];
      terms.emplace_back(begins[static_cast<std::size_t>(next)], -1.0);
      program.Bound(terms, -shortest);
    }
  }
  const std::optional<double> least = program.Minimum();
  return least ? std::optional(Joules(fixed + *least)) : std::nullopt;
}

#else

bool HasLinearPrograms() { return false; }

std::optional<Joules> LeastEffectiveEnergy(const RandomProblem& /*random*/, Ticks /*time*/) {
  return std::nullopt;
}

#endif

}  // namespace zeus::pipeline
