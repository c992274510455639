// One key of a configuration: a field of a message, its `key` option, and the text of its value.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"
#include "tacho/config/v1/options.pb.h"

namespace tacho::config {

const v1::Key& KeyOf(const google::protobuf::FieldDescriptor& field);

// Reads `text` as a value of the scalar `field` and sets it, or appends it where the field is
// repeated. `quoted`: the file had it in quotes, which a number or boolean must not be.
//   INVALID_ARGUMENT  says what is wrong and what was expected, without naming the key;
//                     `*message` is unchanged.
absl::Status SetFromText(absl::string_view text, bool quoted,
                         const google::protobuf::FieldDescriptor& field,
                         google::protobuf::Message* message);

// A scalar as SetFromText reads it, not quoted; `index` is used where the field is repeated.
std::string FormatField(const google::protobuf::Message& message,
                        const google::protobuf::FieldDescriptor& field, int index);

// "true or false", "a duration such as 90s", "a mapping of keys": for messages about wrong types.
std::string ExpectedOf(const google::protobuf::FieldDescriptor& field);

}  // namespace tacho::config
