// How the labels of a foreign series become a job, a task, an attempt, a host, a metric and labels:
// the rules of `interop.mapping`, then the built-in ones (proto/tacho/config/v1/interop.proto).
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "re2/re2.h"
#include "server/interop/formats/label_template.h"
#include "storage/model/series.h"
#include "tacho/config/v1/interop.pb.h"

namespace tacho::server::interop {

// The name under which a foreign series carries that of its metric.
inline constexpr absl::string_view kNameLabel = "__name__";

struct MappedSeries {
  bool dropped = false;  // A rule says so; the rest is empty then.
  storage::Source source;
  std::string metric;
  storage::Labels labels;  // What is left of them, by name.
  std::string rule;        // What decided: "interop.mapping[2]" or "the built-in rule".
};

// Immutable, so thread-safe. A pure function of its configuration.
class LabelMapping {
 public:
  //   INVALID_ARGUMENT  a pattern or template is wrong; the text names its key.
  static absl::StatusOr<std::shared_ptr<const LabelMapping>> Create(
      const config::v1::Interop& config);

  // `labels` as the sender has them, in any order, the metric's name among them. Names that are not
  // allowed here are changed: characters other than letters, digits and _ become _, reserved names
  // get the prefix "exported_", and labels that begin with __ are left out, as are empty values.
  // The result has still to pass admission.
  //   INVALID_ARGUMENT  there is no metric name, or a label is there twice.
  absl::StatusOr<MappedSeries> Map(storage::Labels labels) const;

 private:
  struct Rule {
    std::string name;
    std::vector<std::pair<std::string, std::shared_ptr<const RE2>>> match;
    bool drop = false;
    LabelTemplate job;
    LabelTemplate host;
    LabelTemplate task;
    LabelTemplate attempt;
    LabelTemplate metric;
    std::vector<std::pair<std::string, std::string>> renames;
    std::vector<std::string> drop_labels;
  };
  static absl::StatusOr<Rule> MakeRule(const config::v1::MappingRule& config, std::string name);
  static bool Fits(const Rule& rule, const storage::Labels& labels);
  // False if the rule does not fit after all, for want of a label.
  static bool Apply(const Rule& rule, const storage::Labels& labels, MappedSeries* mapped);

  std::vector<Rule> rules_;  // The built-in ones are the last, and the very last fits all.
};

}  // namespace tacho::server::interop
