// tachoctl against a fake Query service, and answers as whole texts that are kept in files.
#pragma once

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "client/ctl/commands/run.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/ctl/ctl_fake_query.h"

namespace tacho::ctl {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kStart = 1'769'860'800 * kSecond;  // 2026-01-31T12:00:00Z

// Compares with tests/client/ctl/golden/`name`. With TACHO_UPDATE_GOLDEN=1 the file is written
// instead: look at the difference before you commit it.
inline void ExpectGolden(const std::string& name, const std::string& text) {
  const std::string path = std::string(TACHO_SOURCE_DIR "/tests/client/ctl/golden/") + name;
  if (std::getenv("TACHO_UPDATE_GOLDEN") != nullptr) {  // NOLINT(concurrency-mt-unsafe)
    std::ofstream(path, std::ios::binary) << text;
    return;
  }
  std::ifstream file(path, std::ios::binary);
  ASSERT_TRUE(file.good()) << path << " is missing; TACHO_UPDATE_GOLDEN=1 writes it";
  std::ostringstream expected;
  expected << file.rdbuf();
  EXPECT_EQ(text, expected.str()) << path;
}

class CtlReadingTest : public ::testing::Test {
 protected:
  int Run(std::vector<std::string> args) {
    out_.str("");
    err_.str("");
    env_.out = &out_;
    env_.err = &err_;
    env_.now = absl::FromUnixNanos(kStart) + absl::Seconds(100);
    if (env_.address == kDefaultAddress) env_.address = fake_.address;
    return ctl::Run(args, env_);
  }
  std::string Out() const { return out_.str(); }
  std::string Err() const { return err_.str(); }

  // The widest line in characters, escape sequences left out.
  size_t Width() const {
    size_t widest = 0;
    size_t width = 0;
    bool escape = false;
    for (const char c : Out()) {
      if (c == '\x1b') escape = true;
      const bool continuation = (static_cast<unsigned char>(c) & 0xC0) == 0x80;
      if (!escape && c != '\n' && !continuation) ++width;
      if (escape && c == 'm') escape = false;
      if (c != '\n') continue;
      widest = std::max(widest, width);
      width = 0;
    }
    return widest;
  }

  // A series of `values`, one a second, at steps 0, 1, …
  void AddPoints(const std::string& metric, uint32_t task, const std::vector<double>& values) {
    v1::RangeResponse& piece = fake_.range.emplace_back();
    piece.set_series_index(static_cast<uint32_t>(fake_.range.size() - 1));
    v1::SeriesInfo& series = *piece.mutable_series();
    series.mutable_metric()->set_name(metric);
    series.mutable_metric()->set_unit("nats");
    series.set_job("bert");
    series.set_task(task);
    series.set_host("host-" + std::to_string(task));
    for (size_t i = 0; i < values.size(); ++i) {
      piece.mutable_points()->add_times_unix_ns(kStart + static_cast<int64_t>(i) * kSecond);
      piece.mutable_points()->add_steps(static_cast<int64_t>(i));
      piece.mutable_points()->add_values(values[i]);
    }
  }

  FakeQuery fake_;
  Environment env_;
  std::ostringstream out_;
  std::ostringstream err_;
};

}  // namespace tacho::ctl
