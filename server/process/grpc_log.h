// gRPC's own log: failed handshakes, broken frames and other lines that any peer can cause at will.
#pragma once

#include "proto/base/log.h"

namespace tacho::server::process {

// Sends gRPC's lines to `log`, with its limit on lines that others can cause. gRPC has one log for
// the whole process: call this once, from main, before using gRPC.
void LimitGrpcLog(const log::Log& log);

}  // namespace tacho::server::process
