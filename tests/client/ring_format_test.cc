// Holds writer and reader to the worked example of docs/ring_format.md.
#include "client/ring_format.h"

#include "absl/strings/escaping.h"
#include "ring_test_support.h"

namespace tacho::client {
namespace {

constexpr char kDefinitions[] =
    "434c543c380000000100000001000000040000000100000"
    "00e000000000000006c6f737331547261696e696e67206c6f73732e0000000000"
    "e346779328000000020000000000000005000000000000000300000000000000"
    "6d6f64656c6d6c70";
constexpr char kRecords[] =
    "3d297c2838000000010001000100000000000000000000000000000000000000"
    "00002a36fe9c97170700000000000000000000000000e03f"
    "1306ecae48000000020001000000000001000000000000000100000000000000"
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
    recorder.Set(loss, 0.5);
    recorder.CommitStep(7);
    recorder.Event("ended", "Done.");
    path_ = recorder.path();
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
            "544143484f524e470100000000100000"
            "00000400000001000000040000000000");
  EXPECT_EQ(HexAt(512, 40),
            "8000000000000000800000000000000060000000000000000000000000000000"
            "0100000000000000");
  EXPECT_EQ(HexAt(4096, 96), kDefinitions);
  EXPECT_EQ(HexAt(266240, 128), kRecords);
}

// The bytes of version 1 stay readable, whatever the writer does one day.
TEST_F(RingFormatTest, TheDocumentedExampleIsRead) {
  const int fd = open(path_.c_str(), O_RDWR);
  const std::string definitions = absl::HexStringToBytes(kDefinitions);
  const std::string records = absl::HexStringToBytes(kRecords);
  ASSERT_EQ(pwrite(fd, definitions.data(), 96, 4096), 96);
  ASSERT_EQ(pwrite(fd, records.data(), 128, 266240), 128);
  close(fd);
  auto reader = OpenReader(path_);
  const Everything read = ReadAll(reader.get());
  ASSERT_EQ(reader->metrics().size(), 1u);
  EXPECT_EQ(reader->metrics()[0].name, "loss");
  EXPECT_EQ(reader->attributes().at(0).value, "mlp");
  EXPECT_EQ(read.rows.at(0), (Row{1'700'000'000'000'000'000, true, 7, {Bits(0.5)}}));
  EXPECT_EQ(read.events.at(0).message, "Done.");
}

}  // namespace
}  // namespace tacho::client
