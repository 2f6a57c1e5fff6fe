#include "apps/zeus/job/job_source.h"

#include "apps/zeus/numbers.h"

namespace zeus::cli {

void AddJobSourceFlags(Verb verb, JobSourceFlags& flags) {
  verb.AddOption("--server", flags.server,
                 "Address of a zeus serve: http://host:8000, https://… or unix:///path; also from "
                 "ZEUS_SERVER")
      .Check(NotEmpty());
  verb.AddOption("--database", flags.database,
                 "Without a server: sqlite:///path/zeus.db or postgresql://…; by default a file "
                 "in the user's data folder")
      .Check(NotEmpty());
  verb.AddOption("--token-file", flags.token_file,
                 "File with the server's bearer token; else it is ZEUS_TOKEN")
      .Check(NotEmpty());
  verb.AddOption("--ca-file", flags.ca_file,
                 "File with certificates (PEM) whose holders may vouch for the server, instead of "
                 "the system's; also from ZEUS_CA_FILE")
      .Check(NotEmpty());
}

}  // namespace zeus::cli
