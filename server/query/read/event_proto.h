// Events as answers have them.
#pragma once

#include "storage/model/event.h"
#include "tacho/v1/query.pb.h"

namespace tacho::server::query {

void ToProto(const storage::Event& event, v1::RecordedEvent* proto);

}  // namespace tacho::server::query
