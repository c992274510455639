// 'tachoctl plot' draws curves, and refuses what it cannot draw.
#include <cmath>
#include <limits>

#include "client/ctl/call/curve_query.h"
#include "client/ctl/text/plot.h"
#include "client/ctl/text/plot_axis.h"
#include "tests/client/ctl/ctl_reading_fixture.h"

namespace tacho::ctl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<std::string> Labels(const std::vector<Tick>& ticks) {
  std::vector<std::string> labels;
  for (const Tick& tick : ticks) labels.push_back(tick.label);
  return labels;
}

TEST(TicksTest, AreRoundAndShareTheirStyle) {
  EXPECT_THAT(Labels(LinearTicks(0, 1, 6)), ElementsAre("0", "0.2", "0.4", "0.6", "0.8", "1.0"));
  EXPECT_THAT(Labels(LinearTicks(-3, 12, 4)), ElementsAre("0", "5", "10"));
  EXPECT_THAT(Labels(LinearTicks(0, 20000, 5)), ElementsAre("0", "5k", "10k", "15k", "20k"));
  EXPECT_THAT(Labels(LinearTicks(0, 2.5e9, 6)),
              ElementsAre("0", "0.5G", "1.0G", "1.5G", "2.0G", "2.5G"));
  EXPECT_THAT(Labels(LinearTicks(0, 4e-6, 5)),
              ElementsAre("0", "1e-06", "2e-06", "3e-06", "4e-06"));
  EXPECT_THAT(Labels(LinearTicks(1e6, 1e6 + 4, 5)),
              ElementsAre("1000000", "1000001", "1000002", "1000003", "1000004"));
}

TEST(TicksTest, AreThereForEveryRange) {
  for (const double low : {-1.7e308, -5.0, 0.0, 1e-300, 3.14159}) {
    for (const double span : {1e-12, 0.7, 9.9, 1e300}) {
      const double high = low + span;
      if (!(high > low)) continue;
      const std::vector<Tick> ticks = LinearTicks(low, high, 5);
      EXPECT_GE(ticks.size(), 2u) << low << " " << high;
      EXPECT_LE(ticks.size(), 12u) << low << " " << high;
    }
  }
  EXPECT_GE(LinearTicks(-1.7e308, 1.7e308, 5).size(), 2u);
}

TEST(TicksTest, OfALogarithmArePowersOfTen) {
  EXPECT_THAT(Labels(LogTicks(0.001, 100, 6)),
              ElementsAre("0.001", "0.01", "0.1", "1", "10", "100"));
  EXPECT_THAT(Labels(LogTicks(0.9, 110, 12)), ElementsAre("1", "2", "5", "10", "20", "50", "100"));
  EXPECT_LE(LogTicks(1e-300, 1e300, 6).size(), 8u);
}

TEST(TicksTest, OfTimeAreRoundWhereTheReaderIs) {
  const absl::TimeZone zone = absl::FixedTimeZone(90 * 60);  // Half past.
  const auto ns = [](double seconds) { return static_cast<double>(kStart) + seconds * 1e9; };
  EXPECT_THAT(Labels(TimeTicks(ns(0), ns(7200), 4, zone)), ElementsAre("14:00", "15:00"));
  EXPECT_THAT(Labels(TimeTicks(ns(1), ns(31), 5, absl::UTCTimeZone())),
              ElementsAre("12:00:10", "12:00:20", "12:00:30"));
  EXPECT_THAT(Labels(TimeTicks(ns(0), ns(86400 * 3), 5, absl::UTCTimeZone())),
              ElementsAre("02-01", "02-02", "02-03"));
}

std::vector<double> Decay(double from, size_t count) {
  std::vector<double> values;
  for (size_t i = 0; i < count; ++i) {
    values.push_back(from * std::exp(-static_cast<double>(i) / 40) +
                     0.1 * std::sin(static_cast<double>(i)));
  }
  return values;
}

TEST_F(CtlReadingTest, PlotByStepWithABandAcrossTasks) {
  AddPoints("loss", 0, Decay(2, 200));
  AddPoints("loss", 1, Decay(3, 200));
  ASSERT_EQ(Run({"plot", "bert", "loss", "--by", "step"}), kOk) << Err();
  ExpectGolden("plot_80.txt", Out());
  EXPECT_LE(Width(), 80u);
  EXPECT_EQ(fake_.range_request.axis(), v1::AXIS_STEP);
  EXPECT_EQ(fake_.range_request.attempts(), v1::ATTEMPTS_EFFECTIVE);
  EXPECT_EQ(fake_.range_request.max_points(), 160u);
}

TEST_F(CtlReadingTest, PlotFitsANarrowTerminal) {
  AddPoints("loss", 0, Decay(2, 200));
  env_.width = 40;
  ASSERT_EQ(Run({"plot", "bert", "loss", "--by", "step", "--height", "8"}), kOk) << Err();
  ExpectGolden("plot_40.txt", Out());
  EXPECT_LE(Width(), 40u);
}

TEST_F(CtlReadingTest, PlotInAscii) {
  AddPoints("loss", 0, Decay(2, 200));
  AddPoints("loss", 1, Decay(3, 200));
  ASSERT_EQ(Run({"plot", "bert", "loss", "--by", "step", "--ascii", "--height", "10"}), kOk);
  ExpectGolden("plot_ascii.txt", Out());
  for (const char c : Out()) EXPECT_LT(static_cast<unsigned char>(c), 0x80);
}

TEST_F(CtlReadingTest, PlotTellsCurvesApartWithAndWithoutColour) {
  AddPoints("loss", 0, Decay(2, 100));
  AddPoints("loss", 1, Decay(3, 100));
  const std::vector<std::string> args = {"plot", "bert", "loss", "--group-by", "task"};
  ASSERT_EQ(Run(args), kOk) << Err();
  ExpectGolden("plot_two.txt", Out());
  EXPECT_THAT(Out(), Not(HasSubstr("\x1b")));
  std::vector<std::string> forced = args;
  forced.insert(forced.end(), {"--color", "always"});
  ASSERT_EQ(Run(forced), kOk);
  ExpectGolden("plot_two_color.txt", Out());
  EXPECT_THAT(Out(), AllOf(HasSubstr("\x1b[36m"), HasSubstr("\x1b[33m")));
  EXPECT_LE(Width(), 80u);
  env_.color = true;  // As on a terminal.
  std::vector<std::string> never = args;
  never.insert(never.end(), {"--color", "never"});
  ASSERT_EQ(Run(never), kOk);
  EXPECT_THAT(Out(), Not(HasSubstr("\x1b")));
}

TEST_F(CtlReadingTest, PlotMarksWhatIsNotFiniteAndLeavesAGap) {
  std::vector<double> values = Decay(2, 60);
  for (size_t i = 20; i < 25; ++i) values[i] = kNaN;
  values[40] = kInfinity;
  AddPoints("loss", 0, values);
  ASSERT_EQ(Run({"plot", "bert", "loss", "--by", "step", "--height", "8"}), kOk);
  ExpectGolden("plot_nan.txt", Out());
  EXPECT_THAT(Out(), AllOf(HasSubstr("×"), HasSubstr("6 values NaN or infinite")));
}

TEST_F(CtlReadingTest, PlotOfALogarithmLeavesOutWhatHasNone) {
  AddPoints("loss", 0, {1000, 100, 10, 0, -5, 1, 0.1});
  ASSERT_EQ(Run({"plot", "bert", "loss", "--by", "step", "--log", "--height", "8"}), kOk);
  ExpectGolden("plot_log.txt", Out());
  fake_.range.clear();
  AddPoints("loss", 0, {0, -1});
  EXPECT_EQ(Run({"plot", "bert", "loss", "--log"}), kNothing);
  EXPECT_THAT(Err(), HasSubstr("leave out --log"));
}

TEST_F(CtlReadingTest, PlotSurvivesOddData) {
  for (const std::vector<double>& values :
       {std::vector<double>{5}, {0, 0, 0}, {1.7e308, -1.7e308}, {5e-324, 0}, {kNaN, 1}}) {
    for (const char* axis : {"step", "time"}) {
      fake_.range.clear();
      AddPoints("loss", 0, values);
      EXPECT_EQ(Run({"plot", "bert", "loss", "--by", axis}), kOk) << Err();
      EXPECT_LE(Width(), 80u) << Out();
    }
  }
  fake_.range.clear();
  AddPoints("loss", 0, {kNaN, kInfinity});
  EXPECT_EQ(Run({"plot", "bert", "loss"}), kNothing);
  EXPECT_THAT(Err(), HasSubstr("tachoctl nonfinite"));
}

TEST_F(CtlReadingTest, PlotTitleCannotSteerTheTerminal) {
  AddPoints("lo\x1b[2Jss", 0, {1, 2});
  ASSERT_EQ(Run({"plot", "bert", "lo\x1b[2Jss"}), kOk) << Err();
  EXPECT_THAT(Out(), Not(HasSubstr("\x1b")));
}

TEST_F(CtlReadingTest, PlotAsDocuments) {
  AddPoints("loss", 0, {1, kNaN});
  AddPoints("loss", 1, {3, 5});
  ASSERT_EQ(Run({"plot", "bert", "loss", "--by", "step", "-o", "csv"}), kOk);
  EXPECT_EQ(Out(),
            "job,metric,group,step,min,avg,max,count,non_finite\r\n"
            "bert,loss,,0,1,2,3,2,0\r\n"
            "bert,loss,,1,5,5,5,2,1\r\n");
  ASSERT_EQ(Run({"plot", "bert@1", "loss", "-o", "json"}), kOk);
  EXPECT_THAT(Out(), AllOf(HasSubstr("\"job\": \"bert@1\""), HasSubstr("\"series\": 2"),
                           HasSubstr("\"time_unix_ns\": 1769860800000000000")));
  EXPECT_EQ(fake_.range_request.selector().job(), "bert");
  EXPECT_EQ(fake_.range_request.selector().matchers(0).label(), "attempt");
}

TEST_F(CtlReadingTest, PlotRefusesWhatItCannotDo) {
  EXPECT_EQ(Run({"plot", "bert"}), kUsage);
  EXPECT_THAT(Err(), HasSubstr("JOB[@ATTEMPT]... METRIC"));
  EXPECT_EQ(Run({"plot", "bert", "loss", "--height", "2"}), kUsage);
  EXPECT_THAT(Err(), HasSubstr("--height '2': expected a whole number, 4 or more"));
  EXPECT_EQ(Run({"plot", "bert", "loss", "--rate", "--by", "step"}), kUsage);
  EXPECT_THAT(Err(), HasSubstr("--by time"));
  fake_.job.add_metrics()->set_name("loss");
  EXPECT_EQ(Run({"plot", "bert", "los"}), kNothing);
  EXPECT_THAT(Err(), HasSubstr("did you mean 'loss'?"));
}

// The last value of a curve is of the samples: neither the average of its last point nor of a
// series that ended long before.
TEST(CurveFolderTest, LastIsOfTheSamplesAtAnyNumberOfPoints) {
  for (const bool by_step : {false, true}) {
    for (const size_t points : {1, 3, 80}) {
      CurveFolder folder(by_step, points, {});
      for (uint32_t task = 0; task < 3; ++task) {
        v1::RangeResponse piece;
        piece.mutable_series()->set_task(task);
        const int end = task == 2 ? 500 : 1000;
        for (int begin = 0; begin < end; begin += 50) {
          v1::Buckets& buckets = *piece.mutable_buckets();
          buckets.add_first_times_unix_ns(begin);
          buckets.add_last_times_unix_ns(begin + 49);
          buckets.add_first_steps(begin);
          buckets.add_last_steps(begin + 49);
          for (auto* column :
               {buckets.mutable_min(), buckets.mutable_max(), buckets.mutable_avg(),
                buckets.mutable_first(), buckets.mutable_last(), buckets.mutable_sum()}) {
            column->Add(0);
          }
          buckets.add_counts(50);
          buckets.add_non_finite(0);
        }
        auto& last = *piece.mutable_buckets()->mutable_last();
        last[last.size() - 1] = task == 2 ? 100 : 2 + task;
        ASSERT_TRUE(folder.Add(piece).ok());
      }
      const std::vector<MetricCurve> curves = std::move(folder).Finish();
      ASSERT_EQ(curves.size(), 1u);
      EXPECT_EQ(curves[0].last, 2.5) << points;
      EXPECT_EQ(curves[0].points.back().middle, 0);
    }
  }
}

// However buckets are folded, extremes, counts and non-finite values stay.
TEST(CurveFolderTest, KeepsExtremesAndCounts) {
  CurveFolder folder(true, 10, {});
  for (uint32_t task = 0; task < 3; ++task) {
    v1::RangeResponse piece;
    piece.mutable_series()->mutable_metric()->set_name("loss");
    piece.mutable_series()->set_task(task);
    for (int i = 0; i < 1000; ++i) {
      piece.mutable_points()->add_times_unix_ns(i);
      piece.mutable_points()->add_steps(i);
      piece.mutable_points()->add_values(task == 1 && i == 777   ? 50
                                         : task == 2 && i == 333 ? kNaN
                                                                 : i % 7);
    }
    ASSERT_TRUE(folder.Add(piece).ok());
  }
  const std::vector<MetricCurve> curves = std::move(folder).Finish();
  ASSERT_EQ(curves.size(), 1u);
  EXPECT_EQ(curves[0].series, 3u);
  EXPECT_LE(curves[0].points.size(), 10u);
  uint64_t count = 0;
  uint64_t non_finite = 0;
  double high = 0;
  for (const CurvePoint& point : curves[0].points) {
    count += point.count;
    non_finite += point.non_finite;
    high = std::max(high, point.high);
    EXPECT_LE(point.low, point.middle);
    EXPECT_LE(point.middle, point.high);
  }
  EXPECT_EQ(count, 3000u);
  EXPECT_EQ(non_finite, 1u);
  EXPECT_EQ(high, 50);
}

}  // namespace
}  // namespace tacho::ctl
