// Reads YAML configuration files against a proto message whose fields carry `key` options
// (tacho/config/v1/options.proto): strict, with defaults, with the line of every mistake.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"

namespace tacho::config {

// Sets every field of `*config` (emptied first) from `text`, or from its default. An empty text is
// all defaults. Fields with the option `given` list which keys the text gives (options.proto).
//   INVALID_ARGUMENT  every mistake, one a line as "FILE:LINE: key: what is wrong, what was
//                     expected": not YAML, unknown key (with the nearest known one), key given
//                     twice, wrong type, out of bounds, not a duration, address or regular
//                     expression, required and empty. A file of another kind altogether has its
//                     first 50 listed and the others counted.
absl::Status ParseYaml(absl::string_view text, absl::string_view file_name,
                       google::protobuf::Message* config);

// The same from a file. NOT_FOUND or PERMISSION_DENIED if it cannot be read.
absl::Status LoadYamlFile(const std::string& path, google::protobuf::Message* config);

// The whole configuration as YAML with each key's help as a comment; ParseYaml reads it back. A key
// whose default depends on a profile, and that was not given, is in a comment: it must not become
// a given one.
std::string PrintYaml(const google::protobuf::Message& config);

}  // namespace tacho::config
