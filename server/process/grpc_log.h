// What gRPC logs by itself: failed handshakes, broken frames and more that any peer can cause as
// often as it likes.
#pragma once

#include "proto/base/log.h"

namespace tacho::server::process {

// From now on gRPC's lines go to `log`, limited as it limits what others can cause. For the whole
// process, as gRPC's log is: call it once, from main, before gRPC is used.
void LimitGrpcLog(const log::Log& log);

}  // namespace tacho::server::process
