// Compares two readings of a configuration.
#pragma once

#include <string>
#include <vector>

#include "google/protobuf/message.h"

namespace tacho::config {

// Paths ("storage.retention") of the keys whose values differ and that are not `reloadable` (see
// options.proto), in the order of the schema. Both must be of one type, as ParseYaml() leaves them.
std::vector<std::string> KeysThatNeedRestart(const google::protobuf::Message& before,
                                             const google::protobuf::Message& after);

}  // namespace tacho::config
