#include "apps/zeus/profile/html_report.h"

#include <fmt/format.h>

#include <vector>

#include "apps/zeus/html_page.h"
#include "apps/zeus/profile/svg_plot.h"
#include "apps/zeus/profile/uncertain_text.h"
#include "zeus/base/host_name.h"
#include "zeus/base/version.h"
#include "zeus/base/wall_time_text.h"
#include "zeus/base/xml.h"

namespace zeus::cli {
namespace {

std::string Cell(const std::string& text) { return "<td>" + EscapeXml(text) + "</td>"; }

std::string TableRow(const SweepReport& report, std::size_t index) {
  const SweepRow& row = report.rows[index];
  const SweepRow& highest = report.rows.front();
  const std::string letter = LetterOf(report, index);
  std::string text = fmt::format("<tr{}><th scope=\"row\">{}</th>",
                                 letter.empty() ? "" : " class=\"chosen\"", ToText(row.setting));
  text += Cell(WithSigma(row.power.value(), row.power_sigma.value(), "W"));
  if (const auto& step = row.per_step) {
    text += Cell(WithSigma(step->Rate(), step->RateSigma(), "/s"));
    text += Cell(WithSigma(step->time.count(), step->time_sigma.count(), "s"));
    text += Cell(WithSigma(step->energy.value(), step->energy_sigma.value(), "J"));
  } else {
    text += "<td>unknown</td><td>unknown</td><td>unknown</td>";
  }
  if (row.per_step && highest.per_step) {
    text += Cell(Change(row.per_step->time.count(), highest.per_step->time.count()));
    text += Cell(Change(row.per_step->energy.value(), highest.per_step->energy.value()));
  } else {
    text += "<td>unknown</td><td>unknown</td>";
  }
  const std::string chosen = fmt::format("{}", fmt::join(ChosenBy(report, index), ", "));
  return text + Cell(letter.empty() ? "" : letter + "  " + chosen) + "</tr>\n";
}

std::string TableOf(const SweepReport& report) {
  std::string text =
      "<div class=\"wide\"><table>\n<thead><tr><th scope=\"col\">setting</th>"
      "<th scope=\"col\">power</th><th scope=\"col\">throughput</th>"
      "<th scope=\"col\">time per step</th><th scope=\"col\">energy per step</th>"
      "<th scope=\"col\">Δ time</th><th scope=\"col\">Δ energy</th>"
      "<th scope=\"col\">best for</th></tr></thead>\n<tbody>\n";
  for (std::size_t i = 0; i < report.rows.size(); ++i) text += TableRow(report, i);
  text += "</tbody></table></div>\n";
  return text +
         fmt::format(
             "<p>± is one standard deviation, also in the plot; Δ is against {}. It leaves out "
             "the gain of the sensors ({:.1f} %), which all rows share.</p>\n",
             ToText(report.rows.front().setting), 100 * report.shared_error);
}

std::string Fact(const char* name, const std::string& value) {
  return value.empty() ? "" : fmt::format("<dt>{}</dt><dd>{}</dd>\n", name, EscapeXml(value));
}

std::string Facts(const SweepReport& report) {
  std::string text = "<dl>\n";
  text += Fact("label", report.label);
  text += Fact("knob", report.knob_name);
  for (const JobKnob::Device& device : report.devices)
    text += Fact("device", fmt::format("{} {} {}", device.name, device.model, device.uuid));
  text += Fact("driver", report.driver);
  text += Fact("host", HostName());
  text += Fact("date", ToText(report.started));
  text +=
      Fact("slices", fmt::format("{} of {:g} s, each after {:g} s of warm-up", report.slices.size(),
                                 report.plan.slice.count(), report.plan.warmup.count()));
  text += Fact("made by", "zeus " + std::string(Version()));
  return text + "</dl>\n";
}

}  // namespace

std::string ToHtml(const SweepReport& report) {
  const std::string command = EscapeXml(fmt::format("{}", fmt::join(report.command, " ")));
  std::string text = HtmlBegin("zeus profile: " + command) +
                     fmt::format("<h1>Power sweep</h1>\n<p><code>{}</code></p>\n", command);
  text += "<figure style=\"margin: 0\">\n" + ToSvg(report) + "</figure>\n";
  if (!report.rows.empty()) text += TableOf(report);
  if (const std::vector<std::string> notes = NotesOn(report); !notes.empty()) {
    text += "<ul>\n";
    for (const std::string& note : notes) text += "<li>" + EscapeXml(note) + "</li>\n";
    text += "</ul>\n";
  }
  return text + Facts(report) + HtmlEnd();
}

}  // namespace zeus::cli
