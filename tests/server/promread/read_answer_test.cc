// Answers, read back by code that follows Prometheus' description of the formats and not ours.
#include "server/promread/read_answer.h"

#include <snappy.h>

#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "interop/prometheus_read.pb.h"
#include "proto/base/crc32c.h"
#include "server/promread/read_time.h"
#include "server/promread/xor_chunk.h"
#include "tests/server/memory_store.h"

namespace tacho::server::promread {
namespace {

using storage::Matcher;
using testing::ElementsAre;
using testing::HasSubstr;

using Points = std::vector<std::pair<int64_t, uint64_t>>;  // Time in ms, bits.

// tsdb/chunkenc/xor.go: xorIterator.
class XorReader {
 public:
  explicit XorReader(const std::string& bytes) : bytes_(bytes) {}

  Points Read() {
    const auto count = Bits(16);
    Points points;
    int64_t time = 0, distance = 0;
    uint64_t value = 0;
    int leading = 0, trailing = 0;
    for (uint64_t i = 0; i < count; ++i) {
      if (i == 0) {
        const uint64_t zigzag = Varint();
        time = static_cast<int64_t>(zigzag >> 1) ^ -static_cast<int64_t>(zigzag & 1);
        value = Bits(64);
        points.emplace_back(time, value);
        continue;
      }
      distance = i == 1 ? static_cast<int64_t>(Varint()) : distance + Change();
      time += distance;
      if (Bits(1) == 1) {
        if (Bits(1) == 1) {
          leading = static_cast<int>(Bits(5));
          int significant = static_cast<int>(Bits(6));
          if (significant == 0) significant = 64;
          trailing = 64 - leading - significant;
        }
        value ^= Bits(64 - leading - trailing) << trailing;
      }
      points.emplace_back(time, value);
    }
    EXPECT_EQ((at_ + 7) / 8, bytes_.size()) << "nothing follows the last sample";
    return points;
  }

 private:
  uint64_t Bits(int count) {
    uint64_t bits = 0;
    for (int i = 0; i < count; ++i, ++at_) {
      const auto byte = static_cast<uint8_t>(bytes_.at(at_ / 8));
      bits = bits << 1 | (byte >> (7 - at_ % 8) & 1);
    }
    return bits;
  }
  uint64_t Varint() {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const uint64_t byte = Bits(8);
      value |= (byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
  }
  int64_t Change() {
    int ones = 0;
    while (ones < 4 && Bits(1) == 1) ++ones;
    if (ones == 0) return 0;
    const int size = std::array{14, 17, 20, 64}[static_cast<size_t>(ones - 1)];
    const uint64_t bits = Bits(size);
    if (size < 64 && bits > uint64_t{1} << (size - 1)) {
      return static_cast<int64_t>(bits) - (int64_t{1} << size);
    }
    return static_cast<int64_t>(bits);
  }

  const std::string bytes_;
  size_t at_ = 0;
};

TEST(XorChunkTest, ReadsBackBitForBit) {
  std::mt19937_64 random(7);
  const double odd[] = {0.0, -0.0, std::nan(""), INFINITY, -INFINITY, 5e-324, 0.1, 0.1};
  for (int round = 0; round < 300; ++round) {
    XorChunk chunk;
    Points expected;
    int64_t time = round % 3 == 0 ? -12'345 : 1'700'000'000'000;
    for (size_t i = 0; i < 1 + random() % kSamplesOfChunk; ++i) {
      const double value =
          random() % 2 == 0 ? odd[random() % std::size(odd)] : std::bit_cast<double>(random());
      chunk.Append(time, value);
      expected.emplace_back(time, std::bit_cast<uint64_t>(value));
      // Changes in every slot and at their borders.
      const int64_t steps[] = {1000, 1001, 1000 + 8191, 1000 + 8192, 66'000, 1'000'000, 1LL << 40};
      time += steps[random() % std::size(steps)];
    }
    EXPECT_EQ(chunk.first_ms(), expected.front().first);
    EXPECT_EQ(chunk.last_ms(), expected.back().first);
    EXPECT_EQ(XorReader(chunk.Take()).Read(), expected);
    EXPECT_EQ(chunk.samples(), 0u);
  }
}

TEST(FrameTest, HasItsLengthAndChecksum) {
  // storage/remote/chunked.go; the checksum of "123456789" is that of RFC 3720, B.4's polynomial.
  EXPECT_EQ(FrameOf("123456789"), std::string("\x09\xE3\x06\x92\x83") + "123456789");
}

class ReadAnswerTest : public testing::Test {
 protected:
  static constexpr int64_t kMs = 1'000'000;

  ReadAnswerTest() {
    const auto loss = store_.AddSeries("vision", MetricNamed("loss"), 0, "h1");
    store_.AddSamples(loss, {{1 * kMs, 1, 0, 0.5},
                             {2 * kMs, 2, 0, std::nan("")},
                             {2 * kMs + 7, 3, 0, 0.25},
                             {9 * kMs, 4, 1, INFINITY}});
    store_.AddSamples(
        store_.AddSeries("vision", MetricNamed("chip.power"), 0, "h1", {{"chip", "0"}}),
        {{3 * kMs, 1, 0, -0.0}});
    store_.AddSamples(store_.AddSeries("speech", MetricNamed("loss"), 0, "h2"),
                      {{4 * kMs, 1, 0, 7}});
  }

  static ReadQuery Query(std::vector<Matcher> matchers, int64_t begin_ms = 0,
                         int64_t end_ms = 100) {
    return {begin_ms, end_ms, std::move(matchers)};
  }
  static Matcher Equal(const char* label, const char* value) {
    return *Matcher::Create(label, Matcher::Op::kEqual, value);
  }
  ReadWorld World() {
    return {{*store_.get(), *rights_, control_, max_series_}, max_samples_, &held_, frame_bytes_};
  }

  using Series = std::pair<std::string, Points>;  // {name="value",…}
  template <typename Labels>
  static std::string Text(const Labels& labels) {
    std::string text;
    std::string before;
    for (const auto& label : labels) {
      EXPECT_LT(before, label.name()) << "sorted";
      before = label.name();
      text += (text.empty() ? "" : ",") + label.name() + "=" + label.value();
    }
    return text;
  }
  // Each query's series.
  std::vector<std::vector<Series>> AsSamples(const ReadRequest& request) {
    std::string packed, bytes;
    const auto samples = MakeSamplesAnswer(World(), request, &packed);
    EXPECT_TRUE(samples.ok()) << samples.status();
    EXPECT_TRUE(snappy::Uncompress(packed.data(), packed.size(), &bytes));
    ::prometheus_remote::ReadResponse response;
    EXPECT_TRUE(response.ParseFromString(bytes));
    std::vector<std::vector<Series>> answers;
    for (const auto& result : response.results()) {
      auto& answer = answers.emplace_back();
      for (const auto& series : result.timeseries()) {
        auto& points = answer.emplace_back(Text(series.labels()), Points()).second;
        for (const auto& sample : series.samples()) {
          points.emplace_back(sample.timestamp(), std::bit_cast<uint64_t>(sample.value()));
        }
      }
    }
    return answers;
  }
  std::vector<std::vector<Series>> AsChunks(const ReadRequest& request) {
    std::vector<std::vector<Series>> answers(request.queries.size());
    const auto take = [&](const std::string& frame) {
      ++frames_;
      size_t at = 0;
      uint64_t size = 0;
      for (int shift = 0;; shift += 7) {
        const auto byte = static_cast<uint8_t>(frame.at(at++));
        size |= uint64_t{byte & 0x7Fu} << shift;
        if (byte < 0x80) break;
      }
      EXPECT_EQ(frame.size(), at + 4 + size);
      ::prometheus_remote::ChunkedReadResponse response;
      EXPECT_TRUE(response.ParseFromString(frame.substr(at + 4)));
      EXPECT_EQ(response.chunked_series_size(), 1);
      const auto& series = response.chunked_series(0);
      auto& answer = answers.at(static_cast<size_t>(response.query_index()));
      const std::string text = Text(series.labels());
      if (answer.empty() || answer.back().first != text) answer.emplace_back(text, Points());
      for (const auto& chunk : series.chunks()) {
        const Points points = XorReader(chunk.data()).Read();
        EXPECT_LE(points.size(), kSamplesOfChunk);
        EXPECT_EQ(chunk.min_time_ms(), points.front().first);
        EXPECT_EQ(chunk.max_time_ms(), points.back().first);
        auto& all = answer.back().second;
        all.insert(all.end(), points.begin(), points.end());
      }
      return absl::OkStatus();
    };
    const auto samples = MakeChunksAnswer(World(), request, take);
    EXPECT_TRUE(samples.ok()) << samples.status();
    return answers;
  }
  static std::vector<std::string> Names(const std::vector<Series>& answer) {
    std::vector<std::string> names;
    for (const auto& [name, points] : answer) names.push_back(name);
    return names;
  }

  MemoryStore store_;
  security::RightsPtr rights_ = security::Rights::Everything();
  query::QueryControl control_;
  uint64_t max_series_ = 100;
  uint64_t max_samples_ = 1'000'000;
  HeldBytes held_;
  size_t frame_bytes_ = kFrameBytes;
  int frames_ = 0;
};

constexpr char kVision0[] = "__name__=loss,attempt=0,host=h1,job=vision,task=0";
constexpr char kVision1[] = "__name__=loss,attempt=1,host=h1,job=vision,task=0";
constexpr char kSpeech[] = "__name__=loss,attempt=0,host=h2,job=speech,task=0";
constexpr char kPower[] =
    "__name__=chip_power,attempt=0,chip=0,host=h1,job=vision,metric=chip.power,task=0";

TEST_F(ReadAnswerTest, AttemptsAreSeriesAndAMillisecondHasItsLastSample) {
  const ReadRequest request = {{Query({Equal("__name__", "loss"), Equal("job", "vision")})}};
  const std::vector<Series> expected = {
      {kVision0, {{1, std::bit_cast<uint64_t>(0.5)}, {2, std::bit_cast<uint64_t>(0.25)}}},
      {kVision1, {{9, std::bit_cast<uint64_t>(double{INFINITY})}}}};
  EXPECT_THAT(AsSamples(request), ElementsAre(expected));
  EXPECT_THAT(AsChunks(request), ElementsAre(expected));
}

TEST_F(ReadAnswerTest, EveryMatcherNarrowsByTheFinishedLabels) {
  const auto names = [&](std::vector<Matcher> matchers) {
    return Names(AsSamples({{Query(std::move(matchers))}})[0]);
  };
  EXPECT_THAT(names({}), ElementsAre(kPower, kVision0, kSpeech, kVision1));
  EXPECT_THAT(names({Equal("__name__", "chip_power")}), ElementsAre(kPower));
  EXPECT_THAT(names({Equal("metric", "chip.power")}), ElementsAre(kPower));
  EXPECT_THAT(names({Equal("metric", "")}), ElementsAre(kVision0, kSpeech, kVision1));
  EXPECT_THAT(names({Equal("chip", "0")}), ElementsAre(kPower));
  EXPECT_THAT(names({Equal("attempt", "1")}), ElementsAre(kVision1));
  EXPECT_THAT(names({Equal("host", "h2")}), ElementsAre(kSpeech));
  EXPECT_THAT(names({*Matcher::Create("job", Matcher::Op::kMatches, "sp.*|x")}),
              ElementsAre(kSpeech));
  EXPECT_THAT(names({*Matcher::Create("job", Matcher::Op::kNotEqual, "vision")}),
              ElementsAre(kSpeech));
  EXPECT_THAT(names({Equal("__name__", "chip.power")}), ElementsAre());
  EXPECT_THAT(names({Equal("exported_job", "x")}), ElementsAre());
  EXPECT_THAT(names({Equal("job", "speech"), Equal("job", "vision")}), ElementsAre());
  EXPECT_THAT(
      names({Equal("job", "speech"), *Matcher::Create("job", Matcher::Op::kMatches, "s.*")}),
      ElementsAre(kSpeech));
  EXPECT_THAT(names({Equal("job", "none")}), ElementsAre());
  EXPECT_THAT(names({Equal("job", "")}), ElementsAre());
}

TEST_F(ReadAnswerTest, BothEndsOfTheTimeAreIncluded) {
  const auto times = [&](int64_t begin_ms, int64_t end_ms) {
    std::set<int64_t> found;
    const auto answers = AsSamples({{Query({}, begin_ms, end_ms)}});
    for (const auto& [name, points] : answers[0]) {
      EXPECT_FALSE(points.empty()) << "series without samples are left out";
      for (const auto& [time, bits] : points) found.insert(time);
    }
    return found;
  };
  EXPECT_THAT(times(2, 4), ElementsAre(2, 3, 4));
  EXPECT_THAT(times(4, 4), ElementsAre(4));
  EXPECT_THAT(times(INT64_MIN, INT64_MAX), ElementsAre(1, 2, 3, 4, 9));
  EXPECT_THAT(times(5, 4), ElementsAre());
}

TEST_F(ReadAnswerTest, EachQueryHasAnAnswerOfItsOwn) {
  const ReadRequest request = {{Query({Equal("job", "none")}), Query({Equal("job", "speech")}),
                                Query({Equal("chip", "0")})}};
  const auto answers = AsSamples(request);
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_THAT(Names(answers[0]), ElementsAre());
  EXPECT_THAT(Names(answers[1]), ElementsAre(kSpeech));
  EXPECT_THAT(Names(answers[2]), ElementsAre(kPower));
  EXPECT_EQ(AsChunks(request), answers);
}

TEST_F(ReadAnswerTest, JobsOfOthersAreLeftOut) {
  security::Rights::Options options;
  options.name = "reader";
  options.read = true;
  options.jobs = std::make_shared<const RE2>("sp.*");
  rights_ = std::make_shared<const security::Rights>(options);
  EXPECT_THAT(Names(AsSamples({{Query({})}})[0]), ElementsAre(kSpeech));
  EXPECT_THAT(Names(AsSamples({{Query({Equal("job", "vision")})}})[0]), ElementsAre());
}

TEST_F(ReadAnswerTest, ALongSeriesGoesOnInTheNextFrame) {
  std::mt19937_64 random(3);
  std::vector<TestSample> samples;
  for (int i = 0; i < 30'000; ++i) {
    samples.push_back({i * kMs, i, 0, std::bit_cast<double>(random() >> 2)});
  }
  store_.AddSamples(store_.AddSeries("long", MetricNamed("noise"), 0, "h"), samples);
  const ReadRequest request = {{Query({Equal("job", "long")}, 0, 200'000)}};
  frame_bytes_ = 64 << 10;
  const auto chunks = AsChunks(request);
  EXPECT_GE(frames_, 3);
  EXPECT_LE(frames_, 6);
  ASSERT_EQ(chunks[0].size(), 1u);
  EXPECT_EQ(chunks[0][0].second.size(), samples.size());
  EXPECT_EQ(chunks, AsSamples(request));
  frames_ = 0;
  frame_bytes_ = kFrameBytes;
  EXPECT_EQ(AsChunks(request), chunks);
  EXPECT_EQ(frames_, 1);
}

TEST_F(ReadAnswerTest, LimitsSayWhatToAskFor) {
  const ReadRequest request = {{Query({})}};
  std::string packed;
  max_samples_ = 4;
  EXPECT_THAT(MakeSamplesAnswer(World(), request, &packed).status().message(),
              HasSubstr("query.max_samples = 4"));
  const auto send = [](const std::string&) { return absl::OkStatus(); };
  EXPECT_EQ(MakeChunksAnswer(World(), request, send).status().code(),
            absl::StatusCode::kResourceExhausted);
  max_samples_ = 5;
  EXPECT_TRUE(MakeChunksAnswer(World(), request, send).ok());
  max_series_ = 4;  // Of five: chip.power may have had samples in attempt 1.
  EXPECT_THAT(MakeSamplesAnswer(World(), request, &packed).status().message(),
              HasSubstr("more than 4 series"));
  max_series_ = 5;
  EXPECT_TRUE(MakeSamplesAnswer(World(), request, &packed).ok());
  ASSERT_TRUE(held_.Take(kMaxHeldBytes));
  EXPECT_EQ(MakeSamplesAnswer(World(), request, &packed).status().code(),
            absl::StatusCode::kUnavailable);
  held_.Release(kMaxHeldBytes);
  EXPECT_TRUE(MakeSamplesAnswer(World(), request, &packed).ok()) << "what was held is free again";
}

TEST_F(ReadAnswerTest, AClientThatHasGoneEndsIt) {
  control_.Cancel();
  std::string packed;
  EXPECT_EQ(MakeSamplesAnswer(World(), {{Query({})}}, &packed).status().code(),
            absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace tacho::server::promread
