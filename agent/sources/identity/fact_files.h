// Facts about this machine in files and variables of others: labels of a pod, the tpu-env of a TPU
// VM.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace tacho::agent {

// Text in double quotes.

// Takes "text" off the beginning of `*rest`, with \\ \" \n \t as escapes. None, and `*rest` is
// anywhere: it does not begin with a quote, has another escape, or does not end.
std::optional<std::string> ConsumeQuoted(absl::string_view* rest);

// Labels of Kubernetes objects in the two forms in which they reach a program.

inline constexpr size_t kMaxPodLabels = 256;  // A pod's are a dozen.

// A file of a downward API volume: key="value" on each line, with the value quoted as Go does it.
// The escapes \\ \" \n \t are known; a label can have no others. Lines of another form are left
// out, and those beyond kMaxPodLabels.
std::map<std::string, std::string> ParsePodLabels(absl::string_view untrusted);

// The metadata attribute kube-labels of GKE's nodes: "key=value,key=value".
std::map<std::string, std::string> ParseNodeLabels(absl::string_view untrusted);

// The metadata attribute tpu-env of a TPU VM: the settings that Google passes to libtpu. It has
// some thirty entries; the longest value is a list of a large slice's workers.
inline constexpr size_t kMaxTpuEnvEntries = 256;
inline constexpr size_t kMaxTpuEnvKey = 128;
inline constexpr size_t kMaxTpuEnvValue = 64 << 10;

// "KEY: 'value'" a line, as YAML has it:
//
//   ACCELERATOR_TYPE: 'v4-256'      in single quotes, two of which stand for one
//   TOPOLOGY: "4x4x8"               in double quotes, with \\ \" \n \t and no other escape
//   WORKER_ID: 3  # of this host    bare, up to a comment
//   # …                             nothing, as an empty line
//   WRAP: ''                        an empty value, which is there
//
// A line of another form (no colon, a quote that does not end, text behind one, a key that is no
// [A-Za-z0-9_]+) is left out, and so are NULs' lines and what is too long or too many: one damaged
// line does not cost the others. Among equal keys the last counts, as in YAML's common readers.
std::map<std::string, std::string> ParseTpuEnv(absl::string_view untrusted);

}  // namespace tacho::agent
