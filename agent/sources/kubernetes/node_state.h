// The state of a node, by Kubernetes, that matters to the training on it: taints, whether it is
// cordoned, and its health; and what is new between two looks.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tacho::agent {

struct NodeState {
  std::string version = {};  // The object's resourceVersion: another one after each change.
  bool cordoned = false;     // spec.unschedulable.
  // "KEY:EFFECT" to the value, which may be empty. Without those that Kubernetes derives from a
  // cordon or a condition (node.kubernetes.io/unschedulable, …), which say nothing more.
  std::map<std::string, std::string> taints = {};
  // Conditions that are not as they should be: type to "STATUS, REASON: MESSAGE".
  std::map<std::string, std::string> unhealthy = {};
  // The condition Ready; none: nothing yet.
  std::optional<bool> ready = std::nullopt;
};

// Kubernetes allows 317 bytes for a taint's key, and less for other texts except messages. Longer
// texts are cut.
inline constexpr size_t kMaxNodeText = 320;
// The most taints, and the most unhealthy conditions, of a state. Nodes have a dozen; more are left
// out.
inline constexpr size_t kMaxNodeItems = 64;
// The collector refuses events with longer messages. Longer ones are cut.
inline constexpr size_t kMaxNoticeBytes = 1024;

// The object of the node `name` as JSON; none if its resourceVersion is `known`: then nothing after
// it is read. A condition whose type ends in Ready or Healthy should be True. Any other should not
// be True; its Unknown is no fault, because a kubelet that is silent makes Ready unknown as well.
//   INVALID_ARGUMENT  it is not such an object.
absl::StatusOr<std::optional<NodeState>> ParseNode(absl::string_view untrusted,
                                                   absl::string_view name, absl::string_view known);

// Whether this taint means that the node will be taken away, or its pods be evicted for good:
// preemption, an autoscaler's or a provisioner's deletion, a machine that is shut down.
bool AnnouncesEnd(absl::string_view taint_key);
// Whether any of its taints does.
bool AnnouncesEnd(const NodeState& state);

// Remember() writes a state as a text that is not empty. Recall() reads it again: the same taints
// and types, without their texts and without a version.
std::string Remember(const NodeState& state);
NodeState Recall(absl::string_view remembered);

struct NodeNotice {
  std::string kind;  // As docs/notation.md has it.
  std::string message;
  std::map<std::string, std::string> fields;
};

// The events between two looks, in the order: ends, taints, cordon, conditions. `before` is none
// at the first look at a node: then taints that announce no end are how the node is meant to be,
// and no news. A taint whose value changes is no notice either. Two effects of a taint that
// announces the end are one notice.
std::vector<NodeNotice> CompareNodes(const std::optional<NodeState>& before, const NodeState& now);

}  // namespace tacho::agent
