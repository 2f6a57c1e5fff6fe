#pragma once

#include <libpq-fe.h>

#include <string>

#include "zeus/base/result.h"

namespace zeus {

// The libpq functions we use, as a table: LoadPq() fills it when a PostgreSQL database is opened.
// Programs that open none load neither libpq nor the LDAP, Kerberos and GnuTLS that it brings.
// A plain value, which every connection copies. Its functions are as thread-safe as libpq's.
struct PqApi {
  // Connections.
  decltype(&PQconninfoParse) parse_url = nullptr;
  decltype(&PQconninfoFree) free_parsed_url = nullptr;
  decltype(&PQconnectdbParams) connect = nullptr;
  decltype(&PQfinish) finish = nullptr;
  decltype(&PQstatus) status = nullptr;
  decltype(&PQtransactionStatus) transaction_status = nullptr;
  decltype(&PQhost) host = nullptr;
  decltype(&PQdb) database = nullptr;
  decltype(&PQerrorMessage) error_message = nullptr;

  // Statements outside transactions.
  decltype(&PQexec) execute = nullptr;
  decltype(&PQprepare) prepare = nullptr;
  decltype(&PQexecPrepared) execute_prepared = nullptr;

  // Statements within transactions: libpq's pipeline mode.
  decltype(&PQenterPipelineMode) enter_pipeline_mode = nullptr;
  decltype(&PQexitPipelineMode) exit_pipeline_mode = nullptr;
  decltype(&PQpipelineSync) pipeline_sync = nullptr;
  decltype(&PQsendPrepare) send_prepare = nullptr;
  decltype(&PQsendQueryPrepared) send_query_prepared = nullptr;
  decltype(&PQsendQueryParams) send_query_params = nullptr;
  decltype(&PQflush) flush = nullptr;
  decltype(&PQgetResult) get_result = nullptr;

  // Results.
  decltype(&PQresultStatus) result_status = nullptr;
  decltype(&PQresultErrorField) result_error_field = nullptr;
  decltype(&PQcmdStatus) command_status = nullptr;
  decltype(&PQcmdTuples) command_tuples = nullptr;
  decltype(&PQntuples) rows = nullptr;
  decltype(&PQnfields) columns = nullptr;
  decltype(&PQftype) column_type = nullptr;
  decltype(&PQgetisnull) is_null = nullptr;
  decltype(&PQgetvalue) value = nullptr;
  decltype(&PQgetlength) length = nullptr;
  decltype(&PQclear) clear = nullptr;
};

// Loads libpq; it stays loaded until the process ends. Threads may call it at the same time: the
// loader of the system loads the library once, and each call fills a table of its own.
// Returns kNotFound with the package to install when there is no libpq, kInvalidArgument when it is
// older than version 14.
Result<PqApi> LoadPq(const std::string& library = "libpq.so.5");

}  // namespace zeus
