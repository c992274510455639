// What a source of chips has recorded, by metric and labels.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/ring/ring_format.h"
#include "proto/base/stale_marker.h"
#include "tests/agent/recording_sink.h"

namespace tacho::agent::testing {

class ChipSourceFixture : public ::testing::Test {
 protected:
  // `states` are all that a chip of this kind may be in.
  explicit ChipSourceFixture(std::vector<std::string> states) : states_(std::move(states)) {}

  // nullptr: there is none. Labels as RecordingSink puts them together: chip=0state=ok.
  const StoredSample* Find(absl::string_view metric, absl::string_view label = "") const {
    for (const StoredSample& sample : sink_.samples) {
      if (sample.metric == metric && sample.label == label) return &sample;
    }
    return nullptr;
  }
  // -1: there is none.
  double Value(absl::string_view metric, absl::string_view label = "") const {
    const StoredSample* const sample = Find(metric, label);
    return sample == nullptr ? -1 : sample->value();
  }
  bool IsStale(absl::string_view metric, absl::string_view label) const {
    const StoredSample* const sample = Find(metric, label);
    return sample != nullptr && sample->bits == kStaleMarkerBits;
  }
  // "": in none of them.
  std::string StateOf(absl::string_view chip) const {
    for (const std::string& state : states_) {
      if (Value("chip_state", absl::StrCat("chip=", chip, "state=", state)) == 1) return state;
    }
    return "";
  }

  RecordingSink sink_;
  std::vector<std::string> log_;

 private:
  const std::vector<std::string> states_;
};

}  // namespace tacho::agent::testing
