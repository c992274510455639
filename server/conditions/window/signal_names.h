// Which metric has which meaning.
//
// Names are compared after normalisation: ASCII letters in lower case, every run of other
// characters than letters and digits one '_', none at the ends. So "Train/Loss", "train_loss" and
// "train-loss" are one name. A name in a list may have one '*', which stands for any text; names
// without it win over those with it, configured ones over the defaults.
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

namespace tacho::server::conditions {

struct SignalMatch {
  Signal signal = Signal::kCount;
  // The metric's values times this are in the signal's unit: 0.01 for per cent.
  double factor = 1;
  // Of several metrics of a subject with one meaning, that of the lowest rank is the best: tracks
  // are in this order.
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
  // Lists in `configured` replace the defaults of their signals. A configured name that is a
  // default of its signal too keeps its factor; others have 1.
  explicit SignalNames(const std::map<Signal, std::vector<std::string>>& configured = {});

  // nullopt: the metric has no meaning for conditions.
  std::optional<SignalMatch> Find(absl::string_view metric) const;

 private:
  struct Pattern {
    std::string before, after;  // Of the '*'.
    SignalMatch match;
  };

  void Add(absl::string_view name, const SignalMatch& match);

  absl::flat_hash_map<std::string, SignalMatch> exact_;
  std::vector<Pattern> patterns_;
};

}  // namespace tacho::server::conditions
