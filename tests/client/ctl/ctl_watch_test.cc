// 'tachoctl watch' shows a job, and continues where it was after a lost connection.
#include <cmath>
#include <limits>

#include "absl/strings/str_join.h"
#include "client/ctl/views/watch_model.h"
#include "client/ctl/views/watch_screen.h"
#include "tests/client/ctl/ctl_reading_fixture.h"

namespace tacho::ctl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

v1::WatchResponse SeriesMessage(uint32_t index, const std::string& metric, uint32_t task) {
  v1::WatchResponse message;
  message.mutable_series()->set_index(index);
  v1::SeriesInfo& series = *message.mutable_series()->mutable_series();
  series.mutable_metric()->set_name(metric);
  series.set_job("bert");
  series.set_task(task);
  series.set_host("host-" + std::to_string(task));
  return message;
}

// Values one a second and step, from `first` on.
v1::WatchResponse SamplesMessage(uint32_t index, int64_t first, const std::vector<double>& values) {
  v1::WatchResponse message;
  message.mutable_samples()->set_index(index);
  v1::Points& points = *message.mutable_samples()->mutable_points();
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t step = first + static_cast<int64_t>(i);
    points.add_times_unix_ns(kStart + step * kSecond);
    points.add_steps(step);
    points.add_values(values[i]);
  }
  return message;
}

v1::WatchResponse LiveMessage() {
  v1::WatchResponse message;
  message.mutable_live()->set_clock_unix_ns(kStart);
  return message;
}

v1::WatchResponse EventMessage(const std::string& kind, int64_t step) {
  v1::WatchResponse message;
  v1::RecordedEvent& event = *message.mutable_event();
  event.set_kind(kind);
  event.set_step(step);
  event.set_time_unix_ns(kStart + step * kSecond);
  event.set_message("To /ckpt");
  event.mutable_source()->set_task(0);
  return message;
}

v1::GetJobResponse FourTasks() {
  v1::GetJobResponse job;
  job.mutable_job()->set_name("bert");
  job.mutable_job()->set_last_seen_unix_ns(kStart + 99 * kSecond);
  v1::Attempt& attempt = *job.add_attempts();
  attempt.set_attempt(2);
  attempt.set_first_seen_unix_ns(kStart);
  attempt.set_last_seen_unix_ns(kStart + 99 * kSecond);
  attempt.set_first_step(0);
  attempt.set_last_step(99);
  (*attempt.mutable_attributes())["planned_steps"] = "400";
  for (uint32_t i = 0; i < 4; ++i) {
    v1::Task& task = *job.add_tasks();
    task.set_task(i);
    task.set_host("host-" + std::to_string(i));
    task.set_attempt(2);
    task.set_last_step(i == 2 ? 80 : 99);
    task.set_last_seen_unix_ns(kStart + (i == 3 ? 10 : 99) * kSecond);
  }
  job.add_metrics()->set_name("loss");
  return job;
}

class WatchScreenTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Add(SeriesMessage(0, "loss", 0));
    Add(SeriesMessage(1, "loss", 1));
    std::vector<double> values;
    for (int i = 0; i < 100; ++i) values.push_back(3 * std::exp(-i / 30.0));
    Add(SamplesMessage(0, 0, values));
    values[50] = kNaN;
    values[99] = kNaN;
    Add(SamplesMessage(1, 0, values));
    Add(EventMessage("checkpoint_saved", 90));
    Add(LiveMessage());
    const absl::Time now = absl::FromUnixNanos(kStart) + absl::Seconds(100);
    status_ = AssessJob(FourTasks(), {"loss"}, model_.Latest(), {}, now, absl::ZeroDuration());
    view_.job = "bert";
    view_.status = &status_;
    view_.model = &model_;
    view_.now = now;
    view_.zone = absl::UTCTimeZone();
  }
  void Add(const v1::WatchResponse& message) { ASSERT_TRUE(model_.Add(message).ok()); }
  std::string Draw(ScreenSize size, bool unicode = true, bool color = false) {
    const std::vector<std::string> lines = DrawWatch(view_, size, unicode, color);
    EXPECT_LE(lines.size(), size.height);
    if (!color) {
      for (const std::string& line : lines) EXPECT_LE(DisplayWidth(line), size.width) << line;
    }
    return absl::StrJoin(lines, "\n") + "\n";
  }
  static size_t DisplayWidth(const std::string& line) {
    size_t width = 0;
    for (const char c : line) width += (static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1 : 0;
    return width;
  }

  WatchModel model_{absl::Minutes(2), nullptr};
  JobStatus status_;
  WatchView view_;
};

TEST_F(WatchScreenTest, ShowsTheWorstTasksFirst) {
  const std::string screen = Draw({80, 24});
  ExpectGolden("watch_80.txt", screen);
  EXPECT_THAT(screen, AllOf(HasSubstr("step 99 of 400 (25.0 %), 1 steps/s, about 5m to go"),
                            HasSubstr("loss is NaN at step 99"), HasSubstr("SILENT for 1m 30s"),
                            HasSubstr("behind by 19")));
  EXPECT_LT(screen.find("loss is NaN"), screen.find("SILENT"));
  EXPECT_LT(screen.find("SILENT"), screen.find("behind by"));
}

TEST_F(WatchScreenTest, ConditionsStandAboveTheMetrics) {
  status_.conditions.emplace();
  for (const char* name : {"Stalled", "Straggling", "Plateau"}) {
    v1::Condition& condition = status_.conditions->emplace_back();
    condition.set_condition(name);
    condition.set_status(name == std::string("Plateau") ? v1::CONDITION_STATUS_FALSE
                                                        : v1::CONDITION_STATUS_TRUE);
    condition.set_severity(name == std::string("Stalled") ? v1::CONDITION_SEVERITY_CRITICAL
                                                          : v1::CONDITION_SEVERITY_WARNING);
    condition.set_since_unix_ns(kStart + 80 * kSecond);
    condition.set_step(80);
    condition.set_message("Task 2 on host-2 stopped first.");
  }
  ExpectGolden("watch_conditions_80.txt", Draw({80, 24}));
  ExpectGolden("watch_conditions_40.txt", Draw({40, 18}));
  EXPECT_THAT(Draw({80, 24}, true, true), HasSubstr("\x1b[31mcritical Stalled"));
  EXPECT_THAT(Draw({80, 24}), Not(HasSubstr("Plateau")));
  EXPECT_THAT(WatchLine(view_), HasSubstr("  Stalled (critical)  Straggling (warning)"));
}

TEST_F(WatchScreenTest, FitsASmallTerminalAndCountsWhatDoesNot) {
  const std::string screen = Draw({40, 15});
  ExpectGolden("watch_40.txt", screen);
  EXPECT_THAT(screen, HasSubstr("... 2 more tasks, 1 with a problem"));
  for (size_t height = 1; height < 12; ++height) Draw({30, height});
}

TEST_F(WatchScreenTest, ColoursAndAscii) {
  ExpectGolden("watch_color.txt", Draw({80, 24}, true, true));
  const std::string ascii = Draw({80, 24}, false, false);
  for (const char c : ascii) EXPECT_LT(static_cast<unsigned char>(c), 0x80);
}

TEST_F(WatchScreenTest, SaysWhatIsWrongWithTheConnection) {
  view_.note = "lost the collector at x:1: refused\x1b[2J; trying again";
  view_.alarm = true;
  EXPECT_THAT(Draw({80, 24}),
              AllOf(HasSubstr("lost the collector at x:1"), Not(HasSubstr("\x1b"))));
  view_.status = nullptr;
  EXPECT_THAT(Draw({80, 24}), HasSubstr("bert  not known yet, waiting"));
}

TEST_F(WatchScreenTest, OneLineSaysTheSame) {
  EXPECT_EQ(WatchLine(view_),
            "2026-01-31 12:01:40  running  step 99 of 400 (25.0 %), 1 steps/s, about 5m to go"
            "  loss=0.11065 (1 not finite)  3 tasks with a problem, worst: task 1 loss is NaN at "
            "step 99");
}

TEST(WatchModelTest, ForgetsWhatIsOlderThanTheWindow) {
  WatchModel model(absl::Seconds(10), nullptr);
  ASSERT_TRUE(model.Add(SeriesMessage(0, "loss", 0)).ok());
  ASSERT_TRUE(model.Add(SamplesMessage(0, 0, std::vector<double>(1000, 1.0))).ok());
  EXPECT_EQ(model.Metrics(100)[0].course.size(), 10u);
  EXPECT_EQ(model.StepsPerSecond(), 1.0);
  EXPECT_EQ(model.last_step(), 999);
}

TEST(WatchModelTest, RefusesWhatDoesNotFit) {
  WatchModel model(absl::Seconds(10), nullptr);
  EXPECT_EQ(model.Add(SamplesMessage(0, 0, {1})).code(), absl::StatusCode::kInternal);
  EXPECT_EQ(model.Add(SeriesMessage(3, "loss", 0)).code(), absl::StatusCode::kInternal);
  ASSERT_TRUE(model.Add(SeriesMessage(0, "loss", 0)).ok());
  v1::WatchResponse bad = SamplesMessage(0, 0, {1, 2});
  bad.mutable_samples()->mutable_points()->add_values(3);
  EXPECT_EQ(model.Add(bad).code(), absl::StatusCode::kInternal);
}

// Turns bad as soon as it holds a text, as a pipe whose reader has seen enough does.
class Until : public std::stringbuf {
 public:
  explicit Until(std::string text) : text_(std::move(text)) {}

 protected:
  int sync() override { return str().find(text_) == std::string::npos ? 0 : -1; }

 private:
  const std::string text_;
};

class CtlWatchTest : public CtlReadingTest {
 protected:
  // Runs until the output has `text`, half a minute at most.
  std::string Watch(const std::string& text, std::vector<std::string> args) {
    Until buffer(text);
    std::ostream out(&buffer);
    env_.out = &out;
    env_.err = &err_;
    if (env_.address == kDefaultAddress) env_.address = fake_.address;
    args.insert(args.end(), {"--for", "30s", "--interval", "100ms"});
    EXPECT_EQ(ctl::Run(args, env_), kOk) << err_.str();
    EXPECT_THAT(buffer.str(), HasSubstr(text));
    return buffer.str();
  }
};

size_t Occurrences(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST_F(CtlWatchTest, GoesOnAfterTheCollectorCameBackWithoutRepeatingAnything) {
  fake_.job = FourTasks();
  fake_.watches = {
      {SeriesMessage(0, "loss", 0), LiveMessage(), SamplesMessage(0, 0, {5, 6, 7})},
      {SeriesMessage(0, "loss", 1), SeriesMessage(1, "loss", 0), SamplesMessage(1, 0, {5, 6, 7, 8}),
       EventMessage("ended", 3), LiveMessage(), SamplesMessage(1, 4, {9})}};
  const std::string text = Watch("\"value\": 9}", {"watch", "bert", "-o", "json"});
  for (const char* value : {"5", "6", "7", "8", "9"}) {
    EXPECT_EQ(Occurrences(text, std::string("\"value\": ") + value + "}"), 1u) << text;
  }
  EXPECT_THAT(text, AllOf(HasSubstr("{\"note\": \"lost the collector at"),
                          HasSubstr("{\"note\": \"connected again at"),
                          HasSubstr("{\"event\": \"ended\", \"task\": 0")));
  ASSERT_GE(fake_.watch_requests.size(), 2u);
  EXPECT_EQ(fake_.watch_requests[1].begin_unix_ns(), kStart + 2 * kSecond - 60 * kSecond);
  EXPECT_EQ(fake_.watch_requests[0].selector().metrics(0), "loss") << "what says most";
}

TEST_F(CtlWatchTest, PrintsLinesWhereThereIsNoTerminal) {
  fake_.job = FourTasks();
  fake_.watches = {{SeriesMessage(0, "loss", 0), LiveMessage(), EventMessage("checkpoint_saved", 2),
                    SamplesMessage(0, 0, {5, 6, 7})}};
  const std::string text = Watch("loss=7", {"watch", "bert"});
  EXPECT_THAT(text, AllOf(HasSubstr("event 12:00:02 checkpoint_saved step 2 task 0: To /ckpt\n"),
                          Not(HasSubstr("\x1b"))));
}

TEST_F(CtlWatchTest, PutsTheTerminalBackAsItWas) {
  fake_.job = FourTasks();
  fake_.watches = {{SeriesMessage(0, "loss", 0), LiveMessage(), SamplesMessage(0, 0, {5, 6, 7})}};
  env_.out_is_terminal = true;
  env_.terminal_size = [] { return TerminalSize{60, 20}; };
  EXPECT_EQ(Run({"watch", "bert", "--for", "300ms"}), kOk) << Err();
  EXPECT_EQ(Out().find("\x1b[?1049h\x1b[?25l"), 0u);
  EXPECT_THAT(Out(), HasSubstr("\x1b[?25h\x1b[?1049l"));
}

TEST_F(CtlWatchTest, WrongUseAndNoCollectorAreSaidAtOnce) {
  EXPECT_EQ(Run({"watch"}), kUsage);
  EXPECT_EQ(Run({"watch", "bert", "--interval", "soon"}), kUsage);
  EXPECT_THAT(Err(), HasSubstr("--interval"));
  EXPECT_EQ(Run({"watch", "bert", "--address", "127.0.0.1:1"}), kUnreachable);
  EXPECT_EQ(Out(), "") << "no screen is put up for it";
}

TEST_F(CtlWatchTest, JobThatIsNotThereYetMayBeMistyped) {
  fake_.job_status = {grpc::StatusCode::NOT_FOUND, "no job 'brt'; did you mean 'bert'?"};
  EXPECT_EQ(Run({"watch", "brt", "--for", "100ms"}), kOk);
  EXPECT_THAT(Out(), HasSubstr("no job 'brt' yet; waiting for it; did you mean 'bert'?\n"));
}

TEST_F(CtlWatchTest, CollectorThatCannotWatchIsAnError) {
  fake_.job = FourTasks();
  fake_.job_status = {grpc::StatusCode::PERMISSION_DENIED, "the role read is missing"};
  EXPECT_EQ(Run({"watch", "bert"}), kNothing);
  EXPECT_THAT(Err(), HasSubstr("the role read is missing"));
}

}  // namespace
}  // namespace tacho::ctl
