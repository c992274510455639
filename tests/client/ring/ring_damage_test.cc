// Every truncation and every flipped byte of a ring: the reader survives, and what it yields was
// written.
#include <algorithm>
#include <set>

#include "client/ring/ring_format.h"
#include "tests/client/ring/ring_test_support.h"

namespace tacho::client {
namespace {

std::string DescribeEvent(const RingEvent& event) {
  std::string text = event.kind + "|" + event.message + "|" + std::to_string(event.time_unix_ns) +
                     "|" + (event.step ? std::to_string(*event.step) : "-");
  for (const auto& [name, value] : event.fields) text += "|" + name + "=" + value;
  return text;
}

std::string DescribeRow(const Row& row) {
  std::string text =
      std::to_string(row.time) + "|" + (row.has_step ? "s" : "-") + std::to_string(row.step);
  for (const uint64_t bits : row.bits) text += "|" + std::to_string(bits);
  return text;
}

// A ring with some of everything, and what was written to it.
class RingDamageTest : public testing::Test {
 protected:
  RingDamageTest() {
    Recorder recorder = Recorder::Open(SmallRing(directory_));
    const Metric a = recorder.Gauge("a", "s", "First.");
    recorder.SetAttribute("model", "mlp");
    recorder.SetAttribute("model", "cnn");
    const Metric b = recorder.Counter("b", "", "");
    const Recorder::EventField fields[] = {{"name", "value"}};
    for (int64_t i = 0; i < 24; ++i) {
      recorder.Set(a, 1.5 + static_cast<double>(i));
      recorder.Add(b, 1e9);
      recorder.CommitStep(i * 1000, 1'700'000'000'000'000'000 + i);
      if (i % 8 == 3) recorder.Event("event", "number " + std::to_string(i), fields);
    }
    path_ = recorder.path();
    recorder = Recorder();
    fd_ = open(path_.c_str(), O_RDWR);
    RingCursors cursors = {};
    EXPECT_EQ(pread(fd_, &cursors, sizeof(cursors), kRingCursorsOffset), sizeof(cursors));
    used_records_ = cursors.committed;
    used_definitions_ = cursors.definitions;
    const Everything all = ReadAll(OpenReader(path_).get());
    EXPECT_EQ(all.rows.size(), 24u);
    EXPECT_EQ(all.events.size(), 3u);
    for (const Row& row : all.rows) written_.insert(DescribeRow(row));
    for (const RingEvent& event : all.events) written_.insert(DescribeEvent(event));
  }
  ~RingDamageTest() override { close(fd_); }

  // Returns how many records were read.
  size_t ExpectNothingInvented(const std::string& what) {
    auto reader = RingReader::Open(path_);
    if (!reader.ok()) return 0;
    for (const RingMetric& metric : (*reader)->metrics()) {
      EXPECT_TRUE(metric.name == "a" || metric.name == "b") << what;
    }
    for (const RingAttribute& attribute : (*reader)->attributes()) {
      EXPECT_EQ(attribute.key, "model") << what;
      EXPECT_TRUE(attribute.value == "mlp" || attribute.value == "cnn") << what;
    }
    auto batch = (*reader)->Read({});
    if (!batch.ok()) return 0;
    Everything all;
    Collect(*batch, &all);
    for (const Row& row : all.rows) {
      EXPECT_TRUE(written_.count(DescribeRow(row)) == 1) << what << ": " << DescribeRow(row);
    }
    for (const RingEvent& event : all.events) {
      EXPECT_TRUE(written_.count(DescribeEvent(event)) == 1) << what;
    }
    EXPECT_LE(all.rows.size() + all.events.size() + all.lost_rows + all.lost_events,
              written_.size())
        << what;
    return all.rows.size() + all.events.size();
  }

  void FlipEveryByte(uint64_t begin, uint64_t end, std::vector<unsigned char> masks) {
    for (uint64_t at = begin; at < end; ++at) {
      unsigned char original = 0;
      ASSERT_EQ(pread(fd_, &original, 1, static_cast<off_t>(at)), 1);
      for (const unsigned char mask : masks) {
        const unsigned char flipped = original ^ mask;
        ASSERT_EQ(pwrite(fd_, &flipped, 1, static_cast<off_t>(at)), 1);
        ExpectNothingInvented("byte " + std::to_string(at) + " xor " + std::to_string(mask));
      }
      ASSERT_EQ(pwrite(fd_, &original, 1, static_cast<off_t>(at)), 1);
    }
    EXPECT_EQ(ExpectNothingInvented("restored"), written_.size());
  }

  TestDirectory directory_;
  std::string path_;
  uint64_t used_records_ = 0;
  uint64_t used_definitions_ = 0;
  int fd_ = -1;
  std::set<std::string> written_;
};

TEST_F(RingDamageTest, EveryFlippedByteOfTheHeaderAndCursors) {
  FlipEveryByte(0, 600, {0x01, 0x10, 0x80, 0xff});
}

TEST_F(RingDamageTest, EveryFlippedByteOfTheDefinitions) {
  FlipEveryByte(kRingHeaderBytes, kRingHeaderBytes + used_definitions_, {0x01, 0x08, 0x80, 0xff});
}

TEST_F(RingDamageTest, EveryFlippedByteOfTheRecords) {
  const uint64_t records = kRingHeaderBytes + kDefinitionBytes;
  FlipEveryByte(records, records + used_records_ + 64, {0x01, 0x80, 0xff});
}

TEST_F(RingDamageTest, EveryByteMattersToSomeRecord) {
  const uint64_t records = kRingHeaderBytes + kDefinitionBytes;
  for (uint64_t at = records; at < records + 24 * 64; ++at) {
    unsigned char byte = 0;
    ASSERT_EQ(pread(fd_, &byte, 1, static_cast<off_t>(at)), 1);
    byte ^= 0x20;
    ASSERT_EQ(pwrite(fd_, &byte, 1, static_cast<off_t>(at)), 1);
    EXPECT_LT(ExpectNothingInvented("byte " + std::to_string(at)), written_.size()) << at;
    byte ^= 0x20;
    ASSERT_EQ(pwrite(fd_, &byte, 1, static_cast<off_t>(at)), 1);
  }
}

TEST_F(RingDamageTest, EveryTruncation) {
  const auto size = static_cast<off_t>(std::filesystem::file_size(path_));
  // All lengths near the edges of the areas, and a stride of a prime in between.
  for (off_t length = size - 1; length >= 0;) {
    ASSERT_EQ(ftruncate(fd_, length), 0);
    EXPECT_EQ(RingReader::Open(path_).status().code(), absl::StatusCode::kDataLoss) << length;
    const off_t records = kRingHeaderBytes + kDefinitionBytes;
    const bool edge = length < 5000 || std::abs(length - records) < 500 || size - length < 500;
    length -= edge ? 1 : std::min<off_t>(97, length);
  }
}

TEST_F(RingDamageTest, EveryTruncationUnderAnOpenReader) {
  const off_t records = kRingHeaderBytes + kDefinitionBytes;
  auto reader = OpenReader(path_);
  for (auto length = records + static_cast<off_t>(used_records_) - 1; length >= 0;
       length -= length > records || length < 1000 ? 1 : 61) {
    ASSERT_EQ(ftruncate(fd_, length), 0);
    EXPECT_EQ(reader->Read({}).status().code(), absl::StatusCode::kDataLoss) << length;
    if (length == 0) break;
  }
}

// A block that is damaged costs what is in it and no more.
TEST(RingDamageAccountingTest, ADamagedBlockIsCountedAndTheRestIsRead) {
  TestDirectory directory;
  Recorder recorder = Recorder::Open(SmallRing(directory));
  const Metric value = recorder.Gauge("value", "", "");
  constexpr size_t kRows = 4000;  // 56 bytes each: three blocks and a half, less than the ring.
  for (size_t i = 0; i < kRows; ++i) {
    recorder.Set(value, static_cast<double>(i));
    recorder.CommitStep(static_cast<int64_t>(i));
  }
  const int fd = open(recorder.path().c_str(), O_RDWR);
  const off_t second_block = kRingHeaderBytes + kDefinitionBytes + kBlockBytes;
  ASSERT_EQ(pwrite(fd, "damage", 6, second_block + 30'000), 6);
  close(fd);
  auto reader = OpenReader(recorder.path());
  const Everything read = ReadAll(reader.get());
  EXPECT_EQ(reader->corruptions(), 1u);
  EXPECT_EQ(read.rows.size() + read.lost_rows, kRows);
  EXPECT_GT(read.lost_rows, 0u);
  EXPECT_LT(read.lost_rows * 56, kBlockBytes - 29'000);
  EXPECT_EQ(read.rows.back().step, static_cast<int64_t>(kRows) - 1);
}

}  // namespace
}  // namespace tacho::client
