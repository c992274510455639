// The files that AWS' tools share, ~/.aws/credentials and ~/.aws/config: sections of key = value.
//
//   [default]                   [profile training]     in config all but default have the word
//   aws_access_key_id = AKIA…   aws_access_key_id = …  before their name
//
// A line that begins with # or ; is a comment, one that begins with a space belongs to the setting
// above and is not read. As the AWS SDKs' reference guide has it, "Shared config and credentials
// files".
#pragma once

#include <map>
#include <string>

#include "absl/strings/string_view.h"

namespace tacho::storage {

using Profile = std::map<std::string, std::string>;  // Names of settings in lower case.

// The settings of each section by its name, without the word "profile". Never fails: what is no
// setting is left out, as AWS' tools do.
std::map<std::string, Profile> ParseProfiles(absl::string_view text);

}  // namespace tacho::storage
