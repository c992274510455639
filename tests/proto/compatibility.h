// What proto/README.md forbids, as code: compares two versions of a set of .proto files.
#pragma once

#include <string>
#include <vector>

#include "google/protobuf/descriptor.pb.h"

namespace tacho::proto_test {

// Every change from `before` to `now` that breaks programs built with `before`, one sentence each
// that begins with the full name of what changed. Empty if there is none.
std::vector<std::string> FindBreaks(const google::protobuf::FileDescriptorSet& before,
                                    const google::protobuf::FileDescriptorSet& now);

}  // namespace tacho::proto_test
