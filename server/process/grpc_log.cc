#include "server/process/grpc_log.h"

#include <grpc/support/log.h>

namespace tacho::server::process {
namespace {

const log::Log* g_log = nullptr;  // gRPC's function takes no argument of ours.

}  // namespace

void LimitGrpcLog(const log::Log& log) {
  g_log = new log::Log(log);
  gpr_set_log_function([](gpr_log_func_args* line) {
    g_log->Limited(log::Level::kWarn, "gRPC", {{"text", line->message}});
  });
}

}  // namespace tacho::server::process
