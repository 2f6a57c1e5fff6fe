#include "zeus/store/pq_api.h"

#include <optional>
#include <utility>

#include "zeus/base/shared_library.h"

namespace zeus {
namespace {

Result<SharedLibrary> OpenPq(const std::string& name) {
  auto library = SharedLibrary::Open(std::nullopt, {name});
  if (library.ok() || library.error().code != ErrorCode::kNotFound) return library;
  return Error{ErrorCode::kNotFound, library.error().message + ": apt-get install libpq5"};
}

void FindConnectionFunctions(SharedLibrary& library, PqApi& pq) {
  library.FindRequired(pq.parse_url, {"PQconninfoParse"});
  library.FindRequired(pq.free_parsed_url, {"PQconninfoFree"});
  library.FindRequired(pq.connect, {"PQconnectdbParams"});
  library.FindRequired(pq.finish, {"PQfinish"});
  library.FindRequired(pq.status, {"PQstatus"});
  library.FindRequired(pq.transaction_status, {"PQtransactionStatus"});
  library.FindRequired(pq.host, {"PQhost"});
  library.FindRequired(pq.database, {"PQdb"});
  library.FindRequired(pq.error_message, {"PQerrorMessage"});
}

void FindStatementFunctions(SharedLibrary& library, PqApi& pq) {
  library.FindRequired(pq.execute, {"PQexec"});
  library.FindRequired(pq.prepare, {"PQprepare"});
  library.FindRequired(pq.execute_prepared, {"PQexecPrepared"});
  library.FindRequired(pq.enter_pipeline_mode, {"PQenterPipelineMode"});
  library.FindRequired(pq.exit_pipeline_mode, {"PQexitPipelineMode"});
  library.FindRequired(pq.pipeline_sync, {"PQpipelineSync"});
  library.FindRequired(pq.send_prepare, {"PQsendPrepare"});
  library.FindRequired(pq.send_query_prepared, {"PQsendQueryPrepared"});
  library.FindRequired(pq.send_query_params, {"PQsendQueryParams"});
  library.FindRequired(pq.flush, {"PQflush"});
  library.FindRequired(pq.get_result, {"PQgetResult"});
}

void FindResultFunctions(SharedLibrary& library, PqApi& pq) {
  library.FindRequired(pq.result_status, {"PQresultStatus"});
  library.FindRequired(pq.result_error_field, {"PQresultErrorField"});
  library.FindRequired(pq.command_status, {"PQcmdStatus"});
  library.FindRequired(pq.command_tuples, {"PQcmdTuples"});
  library.FindRequired(pq.rows, {"PQntuples"});
  library.FindRequired(pq.columns, {"PQnfields"});
  library.FindRequired(pq.column_type, {"PQftype"});
  library.FindRequired(pq.is_null, {"PQgetisnull"});
  library.FindRequired(pq.value, {"PQgetvalue"});
  library.FindRequired(pq.length, {"PQgetlength"});
  library.FindRequired(pq.clear, {"PQclear"});
}

}  // namespace

Result<PqApi> LoadPq(const std::string& library) {
  ZEUS_TRY(SharedLibrary opened, OpenPq(library));
  PqApi pq;
  FindConnectionFunctions(opened, pq);
  FindStatementFunctions(opened, pq);
  FindResultFunctions(opened, pq);
  ZEUS_RETURN_IF_ERROR(opened.CheckComplete("libpq 14 or newer"));
  return pq;
}

}  // namespace zeus
