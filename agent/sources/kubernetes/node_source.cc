#include "agent/sources/kubernetes/node_source.h"

#include <utility>

#include "absl/status/statusor.h"
#include "agent/sources/rows/sample.h"

namespace tacho::agent {
namespace {

constexpr char kNodeCheckpoint[] = "node/told";
constexpr char kNodeNotice[] = "node";

constexpr Metric kNodeReady = {"host_node_ready", v1::METRIC_TYPE_GAUGE, "1",
                               "1 while Kubernetes takes the node for ready."};
constexpr Metric kNodeUnschedulable = {"host_node_unschedulable", v1::METRIC_TYPE_GAUGE, "1",
                                       "1 while the node is cordoned."};
constexpr Metric kNodeEnding = {"host_node_ending", v1::METRIC_TYPE_GAUGE, "1",
                                "1 while a taint says that the node will be taken away."};
constexpr Metric kNodeTaints = {"host_node_taints", v1::METRIC_TYPE_GAUGE, "1",
                                "Taints of the node, without those that Kubernetes derives from a "
                                "cordon or a condition."};
constexpr Metric kNodeUnhealthy = {"host_node_unhealthy_conditions", v1::METRIC_TYPE_GAUGE, "1",
                                   "Conditions of the node that are not as they should be."};

}  // namespace

NodeSource::NodeSource(NodePlace place, NodeSourceOptions options)
    : place_(std::move(place)),
      options_(std::move(options)),
      log_("node", options_.log),
      cadence_(options_.interval),
      events_(
          {.job = options_.job, .host = options_.host, .running_tasks = options_.running_tasks}),
      rows_(options_.job, options_.host, SeriesRows::Leaves::kLate) {}

absl::Time NodeSource::Poll(absl::Time now, RowSink* sink) {
  if (!cadence_.TakeDue(now)) return cadence_.due();
  if (!book_.has_value()) book_.emplace(kNodeCheckpoint, *sink);
  const bool changed = Look(now);
  events_.EndPoll();
  if (const absl::Status s = book_->Flush(sink); !s.ok()) {
    log_.Warn("events wait", {{"reason", s.ToString()}});
  }
  if (slow_.TakeDue(now) || changed) WriteRow(now, sink);
  return cadence_.due();
}

bool NodeSource::Look(absl::Time now) {
  // A clock that was set back must not keep it from asking.
  if (now < not_before_ && not_before_ - now <= kSlowInterval) return false;
  const absl::StatusOr<std::string> text = GetNode(place_, kTimeout);
  if (!text.ok()) {
    Fail(now, text.status());
    return false;
  }
  auto state = ParseNode(*text, place_.node, state_.has_value() ? state_->version : "");
  if (!state.ok()) {
    Fail(now, state.status());
    return false;
  }
  said_.clear();
  status_ = absl::OkStatus();
  return state->has_value() && Take(now, **std::move(state));
}

bool NodeSource::Take(absl::Time now, NodeState state) {
  const std::string told = book_->Says(kNodeNotice);
  std::optional<NodeState> before;
  if (!told.empty()) before = Recall(told);
  for (const NodeNotice& notice : CompareNodes(before, state)) {
    log_.Warn("Kubernetes gives notice", {{"event", notice.kind}, {"notice", notice.message}});
    events_.Add(now, notice.kind, notice.message, notice.fields, &*book_);
  }
  const bool changed = book_->Update(kNodeNotice, Remember(state)) || !state_.has_value();
  state_ = std::move(state);
  return changed;
}

void NodeSource::Fail(absl::Time now, const absl::Status& why) {
  state_.reset();
  const bool refused = absl::IsPermissionDenied(why);
  status_ = refused ? absl::OkStatus() : why;
  if (refused) not_before_ = now + kSlowInterval;
  if (refused && said_ == why.message()) return;
  said_ = std::string(why.message());
  log_.Warn(refused ? "the node is not watched" : "the node cannot be read",
            {{"reason", why.message()}});
}

void NodeSource::WriteRow(absl::Time now, RowSink* sink) {
  Sample sample;
  if (state_.has_value()) {
    if (state_->ready.has_value()) sample.Add(kNodeReady, *state_->ready ? 1 : 0);
    sample.Add(kNodeUnschedulable, state_->cordoned ? 1 : 0);
    sample.Add(kNodeEnding, AnnouncesEnd(*state_) ? 1 : 0);
    sample.Add(kNodeTaints, static_cast<double>(state_->taints.size()));
    sample.Add(kNodeUnhealthy, static_cast<double>(state_->unhealthy.size()));
  }
  log_.WarnIfLost(rows_.Write(now, sample, sink));
}

}  // namespace tacho::agent
