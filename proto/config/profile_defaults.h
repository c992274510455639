// The defaults that a profile of settings has instead of the general ones: `fast` and `quiet` of
// tacho/config/v1/options.proto.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"

namespace tacho::config {

// The default of the key in that profile, in the syntax of the file; "" if it has the general one.
// Profiles other than "fast" and "quiet" have none of their own.
const std::string& ProfileDefault(const google::protobuf::FieldDescriptor& field,
                                  absl::string_view profile);

// Gives keys of `*section` the defaults of the profile. `section` is as ParseYaml() leaves it and
// has a list of given keys (`given` in options.proto): the keys in it stay as the file gives them.
void UseProfile(absl::string_view profile, google::protobuf::Message* section);

// The field that lists the given keys; nullptr: the message has none.
const google::protobuf::FieldDescriptor* GivenListOf(const google::protobuf::Descriptor& type);

}  // namespace tacho::config
