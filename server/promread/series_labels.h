// A stored series as Prometheus names it: by labels alone. Pure.
//
//   loss              loss{attempt="0",host="h1",job="x",task="3"}
//   node_cpu_total    node_cpu_total{attempt="0",cpu="7",host="h1",job="x"}
//   tpu.hbm.used      tpu_hbm_used{…,metric="tpu.hbm.used"}
//
// An attempt is no part of a stored series, so each attempt that has samples makes a series of
// its own here.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "storage/index/matcher.h"
#include "storage/model/series.h"

namespace tacho::server::promread {

inline constexpr absl::string_view kNameLabel = "__name__";

// (name, value) pairs, sorted by name, names unique, no value empty: the form that Prometheus wants
// (prometheus/prometheus, model/labels). Lists compare as it orders series.
using LabelList = std::vector<std::pair<std::string, std::string>>;

struct MetricLabels {
  std::string name;    // For __name__.
  std::string metric;  // For the label "metric"; empty: there is none.
};

// A name that matches [a-zA-Z_:][a-zA-Z0-9_:]* stays as it is, so that what Prometheus wrote comes
// back under its name. Any other becomes what it is on /metrics (server/aggregate/
// exposition_name.h), where the label "metric" keeps names apart that become equal.
MetricLabels MetricLabelsOf(const storage::Metric& metric);

// __name__, job, task, host, attempt, perhaps metric, and the series' own labels. An own label with
// one of these names gets the prefix "exported_", as Prometheus does with the labels of a target.
LabelList LabelsOf(const storage::Series& series, uint32_t attempt);

// Adds them to the field `labels` of a message: one of Prometheus, or MemberSeries.
template <typename Message>
void AddLabels(const LabelList& labels, Message* message) {
  for (const auto& [name, value] : labels) {
    auto* const label = message->add_labels();
    label->set_name(name);
    label->set_value(value);
  }
}

// The value of a label; "" if it is not there.
absl::string_view ValueOf(const LabelList& labels, absl::string_view name);

// Whether all hold. A label that is absent has the empty value.
bool MatchesAll(const std::vector<storage::Matcher>& matchers, const LabelList& labels);

// Whether a matcher means the same on stored series (storage::Selector::matchers) as on the labels
// here, so that the index can use it.
bool MeansTheSameInStore(const storage::Matcher& matcher);

}  // namespace tacho::server::promread
