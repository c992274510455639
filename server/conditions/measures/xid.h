// The meaning of NVIDIA's XID numbers for an operator.
//
// Source: NVIDIA, "XID Errors" (docs.nvidia.com/deploy/xid-errors). We sum up its causes in three
// degrees of severity.
#pragma once

#include <optional>

#include "absl/strings/string_view.h"
#include "server/conditions/window/finding.h"

namespace tacho::server::conditions {

struct Xid {
  int number = 0;
  absl::string_view text;
  // kInfo: usually the program's own fault; kWarning: watch it; kCritical: take the device out.
  Severity severity = Severity::kWarning;
};

// nullptr: not in the table, which holds the numbers that occur in training.
const Xid* FindXid(int number);

}  // namespace tacho::server::conditions
