// A recorder by a clock that the test moves, and its rows.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include "tests/client/ring/ring_test_support.h"

namespace tacho::client {

constexpr int64_t kMillisecond = 1'000'000;

class StepFixture : public testing::Test {
 protected:
  StepFixture() {
    monotonic_ns = 5'000'000'000;
    RecorderOptions options = SmallRing(directory_);
    options.now_monotonic_ns = [] { return monotonic_ns; };
    recorder_ = Recorder::Open(options);
  }

  static void Pass(int64_t milliseconds) { monotonic_ns += milliseconds * kMillisecond; }

  Everything Read() {
    reader_ = OpenReader(recorder_.path());
    return ReadAll(reader_.get());
  }

  // NaN if it has none there.
  double Value(const Row& row, const std::string& metric) {
    for (size_t i = 0; i < row.bits.size(); ++i) {
      if (reader_->metrics()[i].name != metric) continue;
      return std::bit_cast<double>(row.bits[i]);
    }
    return std::numeric_limits<double>::quiet_NaN();
  }
  bool Has(const Row& row, const std::string& metric) { return !std::isnan(Value(row, metric)); }

  // Static, because the recorder calls a function without an object.
  inline static int64_t monotonic_ns = 0;

  TestDirectory directory_;
  Recorder recorder_;
  std::unique_ptr<RingReader> reader_;
};

}  // namespace tacho::client
