// Runs the C++ of client/README.md, and holds the page to it: each of its cpp blocks stands here,
// word by word.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "client/direct/direct_recorder.h"
#include "client/recorder.h"
#include "client/ring/ring_reader.h"
#include "tests/agent/stream/fake_collector.h"

namespace tacho::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

struct Batch {};
Batch NextBatch() { return {}; }
double TrainOn(const Batch& /*batch*/) { return 0.5; }
void SaveCheckpoint() {}
void AllReduce() {}
std::vector<double> GradientNorms() { return {0.01, 2}; }

constexpr int64_t steps = 3;

// Rings go into a directory of the test, by the variable that trainers use.
class ReadmeTest : public ::testing::Test {
 protected:
  ReadmeTest() {
    std::string pattern = ::testing::TempDir() + "/readme_XXXXXX";
    directory_ = mkdtemp(pattern.data());
    setenv("TACHO_RING_DIR", directory_.c_str(), 1);
  }
  ~ReadmeTest() override {
    unsetenv("TACHO_RING_DIR");
    std::filesystem::remove_all(directory_);
  }

  static std::string Read(const std::string& path) {
    std::ifstream file(std::string(TACHO_SOURCE_DIR "/") + path);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }

  std::string directory_;
};

TEST_F(ReadmeTest, Recording) {
  // clang-format off
auto recorder = tacho::client::Recorder::Open({.job = "resnet"});
const auto loss = recorder.Gauge("loss", "nats", "Training loss.");
for (int64_t n = 0; n < steps; ++n) {
  auto step = recorder.Step(n);
  step.Phase("data");
  const Batch batch = NextBatch();
  step.Phase("compute");
  recorder.Set(loss, TrainOn(batch));
}
auto step = recorder.Step(steps);
step.Phase("compute");
{
  auto collective = step.Collective("dp-allreduce", 4'000'000);
  AllReduce();
}
step.End();
recorder.SetAttribute("model", "resnet-50");
recorder.SetAttribute("planned_steps", steps);
recorder.Event("checkpoint_started", "To /checkpoints/100.");
SaveCheckpoint();
recorder.Event("checkpoint_saved", "To /checkpoints/100.", {{"path", "/checkpoints/100"}});
const auto norms = recorder.Histogram("layer_grad_norms", "1", "Gradient norms of the layers.",
                                      {.first = 1e-3, .factor = 2, .count = 16});
for (const double norm : GradientNorms()) recorder.Observe(norms, norm);
const auto tokens = recorder.Counter("tokens", "tokens", "Tokens seen so far.");
recorder.Add(tokens, 4096);
recorder.CommitStep(7);
  // clang-format on
  ASSERT_TRUE(recorder.recording()) << recorder.error();
  EXPECT_EQ(recorder.refused(), 0u);
  auto reader = RingReader::Open(recorder.path());
  ASSERT_TRUE(reader.ok()) << reader.status();
  auto batch = (*reader)->Read({});
  ASSERT_TRUE(batch.ok()) << batch.status();
  std::vector<int64_t> read_steps;
  std::vector<std::string> events;
  uint64_t observed = 0;
  for (const RingPiece& piece : batch->pieces) {
    if (const auto* rows = std::get_if<RingRows>(&piece.content)) {
      read_steps.insert(read_steps.end(), rows->steps.begin(), rows->steps.end());
    } else if (const auto* event = std::get_if<RingEvent>(&piece.content)) {
      events.push_back(event->kind);
    } else {
      for (const uint64_t count : std::get<RingHistogramState>(piece.content).counts) {
        observed += count;
      }
    }
  }
  EXPECT_THAT(read_steps, ElementsAre(0, 1, 2, 3, 7));
  EXPECT_THAT(events, ElementsAre("checkpoint_started", "checkpoint_saved"));
  EXPECT_EQ(observed, 2u);
  EXPECT_THAT((*reader)->attributes(), SizeIs(2));
  EXPECT_EQ((*reader)->metrics()[3].name, "data_wait_seconds");
}

TEST_F(ReadmeTest, TagsGroupsAndNotes) {
  // clang-format off
auto sweep = tacho::client::Recorder::Open({.job = "lr-0.1", .group = "lr-sweep"});
sweep.SetAttribute("tag.baseline", "1");
sweep.SetAttribute("note", "with the new tokenizer");
  // clang-format on
  auto reader = RingReader::Open(sweep.path());
  ASSERT_TRUE(reader.ok()) << reader.status();
  ASSERT_TRUE((*reader)->Read({}).ok());
  std::vector<std::string> found;
  for (const auto& [key, value] : (*reader)->attributes()) found.push_back(key + "=" + value);
  EXPECT_THAT(found,
              ElementsAre("group=lr-sweep", "tag.baseline=1", "note=with the new tokenizer"));
}

TEST_F(ReadmeTest, RecordingWithoutAnAgent) {
  agent::FakeCollector fake;
  const std::string collector = fake.address();
  {
    // clang-format off
auto direct = tacho::client::OpenDirect({.recorder = {.job = "resnet"}, .collector = collector});
const auto accuracy = direct.Gauge("accuracy", "1", "On held-out data.");
direct.Set(accuracy, 0.75);
direct.CommitStep(100);
    // clang-format on
  }
  ASSERT_THAT(fake.values(), SizeIs(1));
  EXPECT_EQ(fake.values().begin()->second, 0.75);
}

TEST_F(ReadmeTest, EveryExampleOfThePageIsRunHere) {
  const std::string page = Read("client/README.md");
  const std::string source = Read("tests/client/readme_test.cc");
  const std::string fence = "```cpp\n";
  int blocks = 0;
  for (size_t at = page.find(fence); at != std::string::npos; at = page.find(fence, at + 1)) {
    const size_t begin = at + fence.size();
    EXPECT_THAT(source, HasSubstr(page.substr(begin, page.find("```", begin) - begin)));
    ++blocks;
  }
  EXPECT_EQ(blocks, 7);
}

}  // namespace
}  // namespace tacho::client
