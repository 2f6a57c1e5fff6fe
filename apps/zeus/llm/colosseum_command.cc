#include <memory>

#include "apps/zeus/http_server_frame.h"
#include "apps/zeus/llm/colosseum_session.h"
#include "apps/zeus/llm/commands.h"
#include "apps/zeus/numbers.h"

namespace zeus::cli {
namespace {

void AddModelOptions(Verb verb, ColosseumOptions& options) {
  const Option gateway =
      verb.AddOption("--gateway", options.gateway, "URL of a zeus llm gateway that has the models")
          .Check(NotEmpty())
          .TypeName("URL")
          .ShowDefault();
  const Option upstream =
      verb.AddOption("--upstream", options.upstreams,
                     "Instead of a gateway, a server of language models; may be repeated: a "
                     "gateway in this process meters them")
          .Excludes(gateway)
          .Check(NotEmpty())
          .TypeName("URL");
  verb.AddOption("--gpus", options.gpus,
                 "GPUs of the upstream, as for zeus llm gateway; once for each --upstream")
      .Needs(upstream)
      .Check(NotEmpty())
      .TypeName("LIST");
  verb.AddOption("--ca-file", options.authorities,
                 "Certificates to trust for https, instead of the system's")
      .Check(NotEmpty())
      .TypeName("FILE");
  verb.AddOption("--max-tokens", options.max_tokens, "Tokens of the longest answer")
      .Check(WholeNumberBetween(1, 1'000'000))
      .ShowDefault();
  verb.AddOption("--temperature", options.temperature, "Temperature of the answers")
      .Check(NumberBetween(0, 100))
      .ShowDefault();
  verb.AddOption("--top-p", options.top_p, "Share of the likeliest tokens that answers choose from")
      .Check(NumberBetween(0.0001, 1))
      .ShowDefault();
  verb.AddOption("--top-k", options.top_k, "Number of tokens that answers choose from")
      .Check(WholeNumberBetween(1, 1'000'000))
      .ShowDefault();
}

void AddDuelOptions(Verb verb, ColosseumOptions& options) {
  verb.AddOption("--pace", options.pace,
                 "How answers are shown: together (the slower one sets the pace), held (nothing "
                 "before both are complete) or raw (as they come: speed may tell who answers)")
      .Check(OneOf({"together", "held", "raw"}))
      .ShowDefault();
  verb.AddOption("--characters-per-second", options.characters_per_second,
                 "The fastest that an answer is shown, except with --pace raw")
      .Check(NumberBetween(1, 1e6))
      .ShowDefault();
  verb.AddFlag("--store-text", options.store_text,
               "Keep prompts and answers in the database; tell those who ask. Without it no text "
               "is kept");
  verb.AddOption("--max-duels", options.max_duels, "Duels whose answers arrive at the same time")
      .Check(WholeNumberBetween(1, 1000))
      .ShowDefault();
  verb.AddOption("--max-duels-per-address", options.max_duels_per_address, "Those of one address")
      .Check(WholeNumberBetween(1, 1000))
      .ShowDefault();
  verb.AddOption("--max-prompt", options.max_prompt, "Bytes of the longest prompt")
      .Check(WholeNumberBetween(1, 1 << 20))
      .ShowDefault();
  verb.AddOption("--answer-timeout", options.answer_timeout,
                 "Seconds that both answers may take together: a duel expires after ten minutes")
      .Check(NumberBetween(1, 540))
      .ShowDefault();
}

}  // namespace

void AddLlmColosseum(Verb llm, Action& action) {
  auto options = std::make_shared<ColosseumOptions>();
  options->listen = "127.0.0.1:8090";
  const Verb verb = llm.AddVerb(
      "colosseum", "Let two anonymous models answer, vote, and then see what each answer cost");
  AddModelOptions(verb, *options);
  AddDuelOptions(verb, *options);
  AddAddressOptions(verb, *options);
  AddSecurityOptions(verb, *options);
  AddLogOptions(verb, *options);
  AddLimitOptions(verb, *options);
  verb.Footer(
      "Prints \"listening on URL\" when it is ready: open that URL in a browser. SIGINT and "
      "SIGTERM "
      "end it with exit code 0. docs/colosseum.md describes the page and the API.");
  verb.OnChosen([&action, options] {
    action = [options] {
      return options->new_token.empty() ? RunColosseum(*options) : MakeToken(*options);
    };
  });
}

}  // namespace zeus::cli
