// Which metric has which meaning.
//
// Names are compared after normalisation: ASCII letters in lower case, every run of characters
// other than letters and digits as one '_', none at the ends. So "Train/Loss", "train_loss" and
// "train-loss" are the same name. A name in a list may contain one '*', which matches any text.
// Names without '*' take precedence over those with it, and configured names over the defaults.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/conditions/window/signal.h"

namespace tacho::config::v1 {
class ConditionSignals;
}

namespace tacho::server::conditions {

// "loss", "eval_loss", …: the key below `conditions.signals`.
absl::string_view SignalName(Signal signal);

struct SignalMatch {
  Signal signal = Signal::kCount;
  // Converts the metric's values to the signal's unit: 0.01 for per cent.
  double factor = 1;
  // Among several metrics with one meaning, the lowest rank is the best. Tracks are in this order.
  uint32_t rank = 0;
};

struct DefaultName {
  Signal signal;
  absl::string_view name;  // Normalised, but for '*'.
  double factor = 1;
};
// The best of each signal first.
absl::Span<const DefaultName> DefaultNames();

std::string NormalisedName(absl::string_view metric);

// Immutable: any number of threads.
class SignalNames {
 public:
  // Lists in `configured` replace the defaults of their signals. A configured name that is also a
  // default of its signal keeps its factor; others have 1.
  explicit SignalNames(const std::map<Signal, std::vector<std::string>>& configured = {});

  // nullopt: the metric has no meaning for conditions.
  std::optional<SignalMatch> Find(absl::string_view metric) const;

 private:
  struct Pattern {
    std::string before, after;  // The text on both sides of the '*'.
    SignalMatch match;
  };

  void Add(absl::string_view name, const SignalMatch& match);

  absl::flat_hash_map<std::string, SignalMatch> exact_;
  std::vector<Pattern> patterns_;
};

// The names of the configuration's `conditions.signals`.
SignalNames ConfiguredNames(const config::v1::ConditionSignals& config);

}  // namespace tacho::server::conditions
