#include "apps/zeus/manual/manual_verbs.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "apps/zeus/manual/completion.h"
#include "apps/zeus/numbers.h"
#include "zeus/base/file.h"
#include "zeus/base/text.h"

namespace zeus::cli {
namespace {

struct Page {
  std::string name;  // "zeus-run.1"
  std::string text;
};

std::vector<Page> Pages(const CommandLine& line, const ManPageFrame& frame) {
  const VerbDescription program = line.Describe();
  const std::string self = fmt::format("{}({})", program.path, frame.section);
  std::vector<Page> pages;
  std::string others;
  for (const VerbDescription& verb : program.verbs) {
    ManPageFrame below = frame;
    below.see_also = self;
    const std::string name = ManPageName(verb.path);
    pages.push_back({fmt::format("{}.{}", name, frame.section), VerbManPage(verb, below)});
    others += fmt::format("{}{}({})", others.empty() ? "" : ", ", name, frame.section);
  }
  for (const Topic& topic : line.topics()) {
    ManPageFrame below = frame;
    below.section = "7";
    below.see_also = self;
    pages.push_back({fmt::format("{}-{}.7", program.path, topic.name),
                     TopicManPage(program.path, topic, below)});
    others += fmt::format(", {}-{}(7)", program.path, topic.name);
  }
  ManPageFrame own = frame;
  own.see_also = others;
  pages.insert(pages.begin(),
               {fmt::format("{}.{}", program.path, frame.section), ProgramManPage(program, own)});
  return pages;
}

// Where packages have the scripts of each shell, below /usr/share.
std::vector<Page> Scripts(const VerbDescription& program) {
  const std::string& name = program.path;
  return {
      {"bash-completion/completions/" + name, Completion(Shell::kBash, program)},
      {"zsh/vendor-completions/_" + name, Completion(Shell::kZsh, program)},
      {"fish/vendor_completions.d/" + name + ".fish", Completion(Shell::kFish, program)},
  };
}

Status WriteTo(const std::filesystem::path& folder, const Page& page) {
  const auto file = folder / page.name;
  std::error_code error;
  std::filesystem::create_directories(file.parent_path(), error);
  if (error) return FileError(file.parent_path(), error.value());
  return ReplaceFile(file, page.text, Readers::kEverybody, Durability::kSurvivesProcess);
}

Result<int> WriteAllPages(const CommandLine& line, const ManPageFrame& frame,
                          const std::filesystem::path& folder) {
  for (Page page : Pages(line, frame)) {
    page.name = fmt::format("man/man{}/{}", page.name.back(), page.name);
    ZEUS_RETURN_IF_ERROR(WriteTo(folder, page));
  }
  for (const Page& script : Scripts(line.Describe())) ZEUS_RETURN_IF_ERROR(WriteTo(folder, script));
  return 0;
}

Result<int> PrintPage(const CommandLine& line, const ManPageFrame& frame,
                      const std::vector<std::string>& words) {
  const std::string program = line.Describe().path;
  std::string name = program;
  for (const std::string& word : words) name += "-" + word;
  std::vector<std::string> known;
  for (const Page& page : Pages(line, frame)) {
    const std::string found = page.name.substr(0, page.name.rfind('.'));
    if (found == name) {
      std::fputs(page.text.c_str(), stdout);
      return 0;
    }
    if (found != program) known.push_back(found.substr(program.size() + 1));
  }
  const std::string asked = name == program ? "" : name.substr(program.size() + 1);
  const auto closest = ClosestWord(asked, known);
  return Error{ErrorCode::kNotFound,
               fmt::format("there is no page of {}{}", Quote(asked),
                           closest ? fmt::format(": did you mean {}?", *closest) : "")};
}

}  // namespace

void AddManualVerbs(CommandLine& line, std::function<Result<int>()>& action, ManPageFrame frame) {
  auto words = std::make_shared<std::vector<std::string>>();
  auto folder = std::make_shared<std::string>();
  const Verb manual = line.program().AddVerb("manual", "Print a man page: manual VERB | man -l -");
  manual.AddOption("verb", *words, "The verb or topic whose page is wanted; else the program's");
  manual
      .AddOption(
          "--write", *folder,
          "Write all pages, and completion for all shells, below this folder, as in /usr/share")
      .TypeName("FOLDER")
      .Check(NotEmpty());
  manual.OnChosen([&line, &action, words, folder, frame = std::move(frame)] {
    action = [&line, words, folder, frame] {
      return folder->empty() ? PrintPage(line, frame, *words) : WriteAllPages(line, frame, *folder);
    };
  });

  auto shell = std::make_shared<std::string>();
  const Verb completion = line.program().AddVerb(
      "completion", "Print the script with which a shell completes verbs and options");
  completion.AddOption("shell", *shell, "The shell, as in: source <(zeus completion bash)")
      .Check(OneOf({"bash", "zsh", "fish"}))
      .Required();
  completion.OnChosen([&line, &action, shell] {
    action = [&line, shell]() -> Result<int> {
      const Shell chosen = *shell == "bash"  ? Shell::kBash
                           : *shell == "zsh" ? Shell::kZsh
                                             : Shell::kFish;
      std::fputs(Completion(chosen, line.Describe()).c_str(), stdout);
      return 0;
    };
  });
}

}  // namespace zeus::cli
