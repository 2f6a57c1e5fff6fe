#include "zeus/optimizer/budget/testing/budget_program.h"

#ifdef ZEUS_HAS_GLPK
#include <glpk.h>

#include <memory>
#include <vector>
#endif

namespace zeus::water_filling {

#ifdef ZEUS_HAS_GLPK

bool HasLinearPrograms() { return true; }

// A job is a mixture of the points of its curve; the shares of a mixture have the sum 1.
std::optional<double> LeastLoss(const Problem& problem) {
  glp_term_out(GLP_OFF);
  const std::unique_ptr<glp_prob, void (*)(glp_prob*)> program(glp_create_prob(), glp_delete_prob);
  glp_set_obj_dir(program.get(), GLP_MIN);
  const auto domains = static_cast<int>(problem.domains.size());
  const auto jobs = static_cast<int>(problem.jobs.size());
  glp_add_rows(program.get(), domains + jobs);
  for (int d = 0; d < domains; ++d) {
    const Domain& domain = problem.domains[static_cast<std::size_t>(d)];
    glp_set_row_bnds(program.get(), d + 1, GLP_UP, 0, (domain.watts - domain.reserved).value());
  }
  for (int j = 0; j < jobs; ++j) {
    const Job& job = problem.jobs[static_cast<std::size_t>(j)];
    glp_set_row_bnds(program.get(), domains + j + 1, GLP_FX, 1, 1);
    for (const CurvePoint& point : job.curve->points()) {
      const int column = glp_add_cols(program.get(), 1);
      glp_set_col_bnds(program.get(), column, GLP_LO, 0, 0);
      glp_set_obj_coef(program.get(), column, job.weight * job.gpus() * (point.slowdown - 1));
      std::vector<double> gpus(problem.domains.size(), 0);
      for (const Placement& placement : job.placements) {
        for (auto at = std::optional(placement.domain); at; at = problem.domains[*at].parent)
          gpus[*at] += placement.gpus;
      }
      std::vector<int> rows{0, domains + j + 1};
      std::vector<double> values{0, 1};
      for (int d = 0; d < domains; ++d) {
        if (gpus[static_cast<std::size_t>(d)] <= 0) continue;
        rows.push_back(d + 1);
        values.push_back(gpus[static_cast<std::size_t>(d)] *
                         TakenAt(job, point.limit, problem.resource).value());
      }
      glp_set_mat_col(program.get(), column, static_cast<int>(rows.size()) - 1, rows.data(),
                      values.data());
    }
  }
  glp_adv_basis(program.get(), 0);
  if (glp_simplex(program.get(), nullptr) != 0) return std::nullopt;
  if (glp_get_status(program.get()) != GLP_OPT) return std::nullopt;
  return glp_get_obj_val(program.get());
}

#else

bool HasLinearPrograms() { return false; }

std::optional<double> LeastLoss(const Problem&) { return std::nullopt; }

#endif

}  // namespace zeus::water_filling
