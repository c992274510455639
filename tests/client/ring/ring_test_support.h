// Helpers of the ring's tests.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "client/recorder.h"
#include "client/ring/ring_reader.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tacho::client {

// A directory of its own, removed with everything in it.
class TestDirectory {
 public:
  TestDirectory() {
    std::string pattern = testing::TempDir() + "/ring_XXXXXX";
    path_ = mkdtemp(pattern.data());
  }
  TestDirectory(const TestDirectory&) = delete;
  TestDirectory& operator=(const TestDirectory&) = delete;
  ~TestDirectory() { std::filesystem::remove_all(path_); }

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline constexpr uint64_t kSmallRing = uint64_t{256} * 1024;

inline RecorderOptions SmallRing(const TestDirectory& directory) {
  RecorderOptions options;
  options.directory = directory.path();
  options.job = "job";
  options.task = 3;
  options.attempt = 2;
  options.ring_bytes = kSmallRing;
  options.now_unix_ns = [] { return int64_t{1'700'000'000'000'000'000}; };
  options.environment = [](const char*) -> const char* { return nullptr; };
  return options;
}

inline std::unique_ptr<RingReader> OpenReader(const std::string& path) {
  auto reader = RingReader::Open(path);
  EXPECT_TRUE(reader.ok()) << reader.status();
  return reader.ok() ? *std::move(reader) : nullptr;
}

// One row, however it was batched.
struct Row {
  int64_t time = 0;
  bool has_step = false;
  int64_t step = 0;
  std::vector<uint64_t> bits;

  friend bool operator==(const Row&, const Row&) = default;
};

struct Everything {
  std::vector<Row> rows;
  std::vector<RingEvent> events;
  std::vector<RingHistogramState> states;
  uint64_t lost_rows = 0;
  uint64_t lost_events = 0;
  RingCursor end;
};

inline void Collect(const RingBatch& batch, Everything* all) {
  for (const RingPiece& piece : batch.pieces) {
    if (const auto* event = std::get_if<RingEvent>(&piece.content)) {
      all->events.push_back(*event);
      continue;
    }
    if (const auto* state = std::get_if<RingHistogramState>(&piece.content)) {
      all->states.push_back(*state);
      continue;
    }
    const auto& rows = std::get<RingRows>(piece.content);
    ASSERT_EQ(rows.values.size(), rows.times_unix_ns.size() * rows.metric_count);
    ASSERT_EQ(rows.steps.size(), rows.has_steps ? rows.times_unix_ns.size() : 0);
    for (size_t i = 0; i < rows.times_unix_ns.size(); ++i) {
      Row row{rows.times_unix_ns[i], rows.has_steps, rows.has_steps ? rows.steps[i] : 0, {}};
      for (uint32_t m = 0; m < rows.metric_count; ++m) {
        row.bits.push_back(std::bit_cast<uint64_t>(rows.values[i * rows.metric_count + m]));
      }
      all->rows.push_back(row);
    }
  }
  all->lost_rows += batch.lost_rows;
  all->lost_events += batch.lost_events;
  all->end = batch.end;
}

// Reads on from `from` until nothing is left.
inline Everything ReadAll(RingReader* reader, RingCursor from = {}, RingReadLimits limits = {}) {
  Everything all;
  all.end = from;
  for (bool at_end = false; !at_end;) {
    auto batch = reader->Read(all.end, limits);
    EXPECT_TRUE(batch.ok()) << batch.status();
    if (!batch.ok()) break;
    Collect(*batch, &all);
    at_end = batch->at_end;
  }
  return all;
}

inline uint64_t Bits(double value) { return std::bit_cast<uint64_t>(value); }

}  // namespace tacho::client
