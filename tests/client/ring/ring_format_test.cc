// Holds writer and reader to the worked example of docs/ring_format.md.
#include "client/ring/ring_format.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/base/crc32c.h"
#include "tests/client/ring/ring_test_support.h"

namespace tacho::client {
namespace {

// The bytes of a version 1 writer, which has no histogram.
constexpr char kDefinitions1[] =
    "434c543c380000000100000001000000040000000100000"
    "00e000000000000006c6f737331547261696e696e67206c6f73732e0000000000"
    "e346779328000000020000000000000005000000000000000300000000000000"
    "6d6f64656c6d6c70";
constexpr char kRecords1[] =
    "3d297c2838000000010001000100000000000000000000000000000000000000"
    "00002a36fe9c97170700000000000000000000000000e03f"
    "1306ecae48000000020001000000000001000000000000000100000000000000"
    "00002a36fe9c97170700000000000000050000000500000065"
    "6e646564446f6e652e000000000000";

constexpr char kHistogramDefinition[] =
    "73267e9338000000030000000000000005000000010000000000000002000000"
    "6e6f726d73310000000000000000f03f0000000000000040";
constexpr char kRecords2[] =
    "3d297c2838000000010001000100000000000000000000000000000000000000"
    "00002a36fe9c97170700000000000000000000000000e03f"
    "bd6f965f58000000040001000300000001000000000000000100000000000000"
    "00002a36fe9c971707000000000000000000000000000000000000000000f83f"
    "000000000000000001000000000000000000000000000000"
    "6b2a9f7b48000000020001000000000001000000000000000100000000000000"
    "00002a36fe9c97170700000000000000050000000500000065"
    "6e646564446f6e652e000000000000";

class RingFormatTest : public testing::Test {
 protected:
  RingFormatTest() {
    RecorderOptions options = SmallRing(directory_);
    options.job = "demo";
    options.task = 1;
    options.attempt = 0;
    Recorder recorder = Recorder::Open(options);
    const Metric loss = recorder.Gauge("loss", "1", "Training loss.");
    recorder.SetAttribute("model", "mlp");
    const HistogramMetric norms =
        recorder.Histogram("norms", "1", "", {.first = 1, .factor = 2, .count = 2});
    recorder.Observe(norms, 1.5);
    recorder.Set(loss, 0.5);
    recorder.CommitStep(7);
    recorder.Event("ended", "Done.");
    path_ = recorder.path();
  }

  // Makes the ring one of `version` that holds these.
  void Rewrite(uint32_t version, absl::string_view definitions_hex, absl::string_view records_hex) {
    const std::string definitions = absl::HexStringToBytes(definitions_hex);
    const std::string records = absl::HexStringToBytes(records_hex);
    const int fd = open(path_.c_str(), O_RDWR);
    RingHeader header;
    ASSERT_EQ(pread(fd, &header, sizeof(header), 0), static_cast<ssize_t>(sizeof(header)));
    header.version = version;
    header.crc = ExtendCrc32c(0, &header, kHeaderCrcOffset);
    const RingCursors cursors = {.reserved = records.size(),
                                 .committed = records.size(),
                                 .definitions = definitions.size(),
                                 .refused = 0,
                                 .closed = 1};
    EXPECT_GT(pwrite(fd, &header, sizeof(header), 0), 0);
    EXPECT_GT(pwrite(fd, &cursors, sizeof(cursors), kRingCursorsOffset), 0);
    EXPECT_GT(pwrite(fd, definitions.data(), definitions.size(), 4096), 0);
    EXPECT_GT(pwrite(fd, records.data(), records.size(), 266240), 0);
    close(fd);
  }

  std::string HexAt(uint64_t offset, size_t size) {
    std::string bytes(size, '\0');
    const int fd = open(path_.c_str(), O_RDONLY);
    EXPECT_EQ(pread(fd, bytes.data(), size, static_cast<off_t>(offset)),
              static_cast<ssize_t>(size));
    close(fd);
    return absl::BytesToHexString(bytes);
  }

  TestDirectory directory_;
  std::string path_;
};

TEST_F(RingFormatTest, TheDocumentedExampleIsWhatIsWritten) {
  EXPECT_EQ(HexAt(0, 32),
            "544143484f524e470200000000100000"
            "00000400000001000000040000000000");
  EXPECT_EQ(HexAt(512, 40),
            "d800000000000000d80000000000000098000000000000000000000000000000"
            "0100000000000000");
  EXPECT_EQ(HexAt(4096, 152), absl::StrCat(kDefinitions1, kHistogramDefinition));
  EXPECT_EQ(HexAt(266240, 216), kRecords2);
}

TEST_F(RingFormatTest, TheDocumentedExampleIsRead) {
  Rewrite(2, absl::StrCat(kDefinitions1, kHistogramDefinition), kRecords2);
  auto reader = OpenReader(path_);
  const Everything read = ReadAll(reader.get());
  ASSERT_EQ(reader->histograms().size(), 1u);
  EXPECT_EQ(reader->histograms()[0].name, "norms");
  EXPECT_EQ(reader->histograms()[0].bounds, (std::vector<double>{1, 2}));
  ASSERT_EQ(read.states.size(), 1u);
  EXPECT_EQ(read.states[0].counts, (std::vector<uint64_t>{0, 1, 0}));
  EXPECT_EQ(read.states[0].sum, 1.5);
  EXPECT_EQ(read.rows.size(), 1u);
  EXPECT_EQ(read.events.size(), 1u);
}

// The bytes of version 1 stay readable, whatever the writer does one day.
TEST_F(RingFormatTest, ARingOfVersion1IsRead) {
  Rewrite(1, kDefinitions1, kRecords1);
  auto reader = OpenReader(path_);
  const Everything read = ReadAll(reader.get());
  ASSERT_EQ(reader->metrics().size(), 1u);
  EXPECT_EQ(reader->metrics()[0].name, "loss");
  EXPECT_EQ(reader->attributes().at(0).value, "mlp");
  EXPECT_EQ(read.rows.at(0), (Row{1'700'000'000'000'000'000, true, 7, {Bits(0.5)}}));
  EXPECT_EQ(read.events.at(0).message, "Done.");
  EXPECT_EQ(reader->corruptions(), 0u);
}

TEST_F(RingFormatTest, AHistogramInARingOfVersion1IsDamage) {
  Rewrite(1, absl::StrCat(kDefinitions1, kHistogramDefinition), kRecords2);
  auto reader = OpenReader(path_);
  const Everything read = ReadAll(reader.get());
  EXPECT_TRUE(reader->histograms().empty());
  EXPECT_TRUE(read.states.empty());
  EXPECT_EQ(reader->corruptions(), 2u);
}

}  // namespace
}  // namespace tacho::client
