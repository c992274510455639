// Labels of Kubernetes objects in the two forms in which they reach a program.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "absl/strings/string_view.h"

namespace tacho::agent {

inline constexpr size_t kMaxPodLabels = 256;  // A pod's are a dozen.

// A file of a downward API volume: a line each, key="value" with the value quoted as Go does it.
// Of escapes \\ \" \n \t are known, which is all that a label could have. Lines of another form are
// left out, and what is too many.
std::map<std::string, std::string> ParsePodLabels(absl::string_view untrusted);

// The metadata attribute kube-labels of GKE's nodes: "key=value,key=value".
std::map<std::string, std::string> ParseNodeLabels(absl::string_view untrusted);

}  // namespace tacho::agent
