#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/sources/chips/process_jobs.h"
#include "agent/sources/notices/maintenance.h"
#include "agent/sources/notices/notice_book.h"
#include "agent/sources/notices/notices_source.h"
#include "client/recorder.h"
#include "tests/agent/recording_sink.h"
#include "tests/agent/sources/tpu/tpu_test_machine.h"
#include "tests/support/fake_metadata_server.h"

namespace tacho::agent {
namespace {

using ::tacho::testing::FakeMetadataServer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

using Manner = FakeMetadataServer::Manner;

constexpr char kPlannedPath[] = "instance/upcoming-maintenance?alt=json";

TEST(MaintenanceTest, NoticeIsAWordOrNothing) {
  EXPECT_EQ(*ParseNotice("NONE"), "");
  EXPECT_EQ(*ParseNotice("FALSE\n"), "");
  EXPECT_EQ(*ParseNotice("TRUE"), "TRUE");
  EXPECT_EQ(*ParseNotice("TERMINATE_ON_HOST_MAINTENANCE"), "TERMINATE_ON_HOST_MAINTENANCE");
  for (const char* text : {"", " ", "none", "<!DOCTYPE html>", "TRUE FALSE", "{}"}) {
    EXPECT_FALSE(ParseNotice(text).ok()) << text;
  }
  EXPECT_TRUE(ParseNotice(std::string(128, 'A')).ok());
  EXPECT_FALSE(ParseNotice(std::string(129, 'A')).ok());
}

TEST(MaintenanceTest, PlanIsReadInBothSpellings) {
  const auto planned = ParsePlannedMaintenance(
      R"({"type": "SCHEDULED", "maintenance_status": "PENDING", "can_reschedule": "true",
          "window_start_time": "2026-03-01T10:00:00+0000", "other": {"type": "x"},
          "maintenance_reasons": ["FAILURE_DISK", "PLANNED_UPDATE"]})");
  ASSERT_TRUE(planned.ok()) << planned.status();
  EXPECT_THAT(**planned,
              ElementsAre(Pair("can_reschedule", "true"),
                          Pair("maintenance_reasons", "FAILURE_DISK,PLANNED_UPDATE"),
                          Pair("maintenance_status", "PENDING"), Pair("type", "SCHEDULED"),
                          Pair("window_start_time", "2026-03-01T10:00:00+0000")));
  const auto camel = ParsePlannedMaintenance(
      R"({"canReschedule": false, "latestWindowStartTime": "t", "maintenanceStatus": "ONGOING"})");
  ASSERT_TRUE(camel.ok()) << camel.status();
  EXPECT_THAT(**camel,
              ElementsAre(Pair("can_reschedule", "false"), Pair("latest_window_start_time", "t"),
                          Pair("maintenance_status", "ONGOING")));
}

TEST(MaintenanceTest, NothingIsPlannedInEachOfItsForms) {
  for (const char* text :
       {"NONE", "\"NONE\"", "", "{}",
        R"({ "error": "no notifications have been received yet, try again later" })"}) {
    const auto planned = ParsePlannedMaintenance(text);
    ASSERT_TRUE(planned.ok()) << text << ": " << planned.status();
    EXPECT_FALSE(planned->has_value()) << text;
  }
}

TEST(MaintenanceTest, OtherTextIsRefusedAndLongTextIsCut) {
  for (const char* text : {"<html>", "[]", "{", R"({"type": "a"} more)", R"({"type": )"}) {
    EXPECT_FALSE(ParsePlannedMaintenance(text).ok()) << text;
  }
  const auto planned = ParsePlannedMaintenance(
      absl::StrCat(R"({"type": "a\u0007)", std::string(kMaxPlannedText + 1, 'x'), "\"}"));
  ASSERT_TRUE(planned.ok()) << planned.status();
  EXPECT_EQ((*planned)->at("type"), absl::StrCat("a", std::string(kMaxPlannedText - 2, 'x')));
}

v1::Event EventOf(const std::string& kind) {
  v1::Event event;
  event.set_kind(kind);
  return event;
}

TEST(NoticeBookTest, EventsThatAStopHasHeldBackAreToldOnceAfterARestart) {
  testing::RecordingSink sink;
  NoticeBook book("k", sink);
  EXPECT_TRUE(book.Update("n", "TRUE"));
  for (const char* kind : {"a", "b", "c"}) book.Add(EventOf(kind));
  sink.RefuseAfter(1);  // As if the agent were killed behind the first.
  EXPECT_FALSE(book.Flush(&sink).ok());
  EXPECT_THAT(sink.events, SizeIs(1));
  sink.RefuseNothing();

  NoticeBook next("k", sink);
  EXPECT_FALSE(next.Update("n", "TRUE")) << "it is told already";
  EXPECT_TRUE(next.Flush(&sink).ok());
  ASSERT_THAT(sink.events, SizeIs(3));
  EXPECT_EQ(sink.events[1].kind(), "b");
  EXPECT_EQ(sink.events[2].kind(), "c");
  EXPECT_THAT(NoticeBook("k", sink).waiting(), 0);
}

TEST(NoticeBookTest, WhatSaysNothingAnyMoreIsForgotten) {
  testing::RecordingSink sink;
  NoticeBook book("k", sink);
  book.Update("n", "TRUE");
  EXPECT_TRUE(book.Flush(&sink).ok());
  EXPECT_EQ(NoticeBook("k", sink).Says("n"), "TRUE");
  EXPECT_TRUE(book.Update("n", ""));
  EXPECT_TRUE(book.Flush(&sink).ok());
  EXPECT_THAT(sink.checkpoints, IsEmpty());
}

TEST(NoticeBookTest, DamagedBookIsAnEmptyOne) {
  for (const char* text : {"x", "1:1", "1:11:n", "9:1", "1:01:\xff", "99999999999999999999:1"}) {
    testing::RecordingSink sink;
    sink.checkpoints["k"] = text;
    const NoticeBook book("k", sink);
    EXPECT_EQ(book.waiting(), 0) << text;
    EXPECT_EQ(book.Says("n"), "") << text;
  }
}

TEST(NoticeBookTest, OldestAreDroppedAtTheLimit) {
  testing::RecordingSink sink;
  NoticeBook book("k", sink);
  for (size_t i = 0; i <= NoticeBook::kMaxWaiting; ++i) book.Add(EventOf("e"));
  EXPECT_EQ(book.waiting(), NoticeBook::kMaxWaiting);
}

std::vector<std::string> Names(const std::vector<ProcessJob>& tasks) {
  std::vector<std::string> names;
  for (const ProcessJob& task : tasks) {
    names.push_back(absl::StrCat(task.job, "/", task.task, "/", task.attempt));
  }
  return names;
}

TEST(RunningTasksTest, RingsOfLivingProcessesAndHoldersOfChips) {
  testing::TpuTestMachine machine;
  const RunningTasksPlaces places = {
      .rings = machine.root(), .proc = machine.proc(), .dev = machine.dev()};
  EXPECT_THAT(FindRunningTasks(places), IsEmpty());
  machine.AddV5p("0000:00:05.0", 3);
  machine.AddProcess(41, {"vfio/3"}, {{"TACHO_JOB", "bert"}, {"TACHO_TASK", "7"}});
  machine.AddProcess(42, {}, {{"TACHO_JOB", "holds-no-chip"}});
  machine.AddProcess(43, {"vfio/3"},
                     {{"JOBSET_NAME", "x"}, {"JOB_COMPLETION_INDEX", "1"}, {"JOB_INDEX", "2"}});
  auto recorder = client::Recorder::Open(
      {.directory = machine.root(), .job = "of-ring", .task = 5, .attempt = 2});
  EXPECT_THAT(Names(FindRunningTasks(places)), ElementsAre("bert/7/0", "of-ring/5/2"))
      << "which task of x it is cannot be told";
  recorder = client::Recorder();
  EXPECT_THAT(Names(FindRunningTasks(places)), ElementsAre("bert/7/0"));
}

class NoticesSourceTest : public ::testing::Test {
 protected:
  NoticesSourceTest() {
    fake_.SetTpuVm();
    Restart();
  }
  void Restart() {
    NoticesOptions options;
    options.job = "hosts";
    options.host = "host-a";
    options.interval = absl::Seconds(5);
    options.running_tasks = [this] { return tasks_; };
    source_ = std::make_unique<NoticesSource>(
        MetadataServer(*ParseHttpUrl(absl::StrCat("http://", fake_.authority())),
                       absl::Seconds(30)),
        std::move(options));
  }
  void PollNext(absl::Duration later = absl::Seconds(5)) {
    now_ += later;
    sink_.samples.clear();
    sink_.events.clear();
    source_->Poll(now_, &sink_);
  }
  std::vector<std::string> Told() const {
    std::vector<std::string> told;
    for (const v1::Event& event : sink_.events) {
      const v1::Source& of = event.source();
      told.push_back(of.has_task() ? absl::StrCat(event.kind(), " ", of.job(), "/", of.task(), "/",
                                                  of.attempt())
                                   : absl::StrCat(event.kind(), " ", of.job()));
    }
    return told;
  }
  // NaN: there is no such series.
  double Value(absl::string_view metric) const {
    for (const testing::StoredSample& sample : sink_.samples) {
      if (sample.metric == metric) return sample.value();
    }
    return std::numeric_limits<double>::quiet_NaN();
  }

  FakeMetadataServer fake_;
  std::vector<ProcessJob> tasks_;
  testing::RecordingSink sink_;
  absl::Time now_ = absl::FromUnixSeconds(1'700'000'000);
  std::unique_ptr<NoticesSource> source_;
};

TEST_F(NoticesSourceTest, QuietMachineTellsThatItIsQuiet) {
  PollNext();
  EXPECT_THAT(Told(), IsEmpty());
  EXPECT_EQ(Value("host_preempted"), 0);
  EXPECT_EQ(Value("host_maintenance"), 0);
  EXPECT_EQ(Value("host_maintenance_planned"), 0);
  PollNext();
  EXPECT_THAT(sink_.samples, IsEmpty()) << "once a minute";
  EXPECT_THAT(sink_.checkpoints, IsEmpty());
}

TEST_F(NoticesSourceTest, PreemptionIsToldToTheMachineAndItsTasksOnce) {
  PollNext();
  tasks_ = {{"bert", "3", "1", true}, {"gpt", "0", "0", false}, {"odd", "", "", false}};
  fake_.Set("instance/preempted", "TRUE");
  PollNext();
  EXPECT_THAT(Told(), ElementsAre("preempted hosts", "preempted bert/3/1", "preempted gpt/0/0"));
  EXPECT_EQ(sink_.events[1].source().host(), "host-a");
  EXPECT_EQ(sink_.events[1].time_unix_ns(), absl::ToUnixNanos(now_));
  EXPECT_EQ(Value("host_preempted"), 1) << "at once";
  PollNext();
  EXPECT_THAT(Told(), IsEmpty());
  Restart();
  PollNext();
  EXPECT_THAT(Told(), IsEmpty()) << "nor after a restart of the agent";
}

TEST_F(NoticesSourceTest, MaintenanceBeginsChangesAndEnds) {
  tasks_ = {{"bert", "3", "1", true}};
  PollNext();
  fake_.Set("instance/maintenance-event", "MIGRATE_ON_HOST_MAINTENANCE");
  PollNext();
  EXPECT_THAT(Told(), ElementsAre("maintenance_started hosts", "maintenance_started bert/3/1"));
  EXPECT_EQ(sink_.events[0].fields().at("notice"), "MIGRATE_ON_HOST_MAINTENANCE");
  EXPECT_EQ(Value("host_maintenance"), 1);
  fake_.Set("instance/maintenance-event", "TERMINATE_ON_HOST_MAINTENANCE");
  PollNext();
  EXPECT_EQ(sink_.events.at(0).fields().at("notice"), "TERMINATE_ON_HOST_MAINTENANCE");
  fake_.Set("instance/maintenance-event", "NONE");
  PollNext();
  EXPECT_THAT(Told(), ElementsAre("maintenance_ended hosts", "maintenance_ended bert/3/1"));
  EXPECT_EQ(Value("host_maintenance"), 0);
}

TEST_F(NoticesSourceTest, PlannedMaintenanceIsAskedForOnceAMinute) {
  PollNext();
  fake_.Set(kPlannedPath, R"({"type": "SCHEDULED", "maintenance_status": "PENDING",
                              "window_start_time": "t1", "window_end_time": "t2"})");
  PollNext();
  EXPECT_THAT(Told(), IsEmpty());
  PollNext(absl::Minutes(1));
  ASSERT_THAT(Told(), ElementsAre("maintenance_planned hosts"));
  EXPECT_THAT(sink_.events[0].message(), HasSubstr("SCHEDULED, PENDING, from t1 to t2"));
  EXPECT_EQ(sink_.events[0].fields().at("window_start_time"), "t1");
  EXPECT_EQ(Value("host_maintenance_planned"), 1);
  Restart();
  PollNext(absl::Minutes(1));
  EXPECT_THAT(Told(), IsEmpty());
  fake_.Set(kPlannedPath, "NONE");
  PollNext(absl::Minutes(1));
  EXPECT_THAT(Told(), ElementsAre("maintenance_cleared hosts"));
}

TEST_F(NoticesSourceTest, EventsWaitWhileTheSpoolRefuses) {
  PollNext();
  fake_.Set("instance/preempted", "TRUE");
  sink_.RefuseAfter(0);
  PollNext();
  EXPECT_THAT(Told(), IsEmpty());
  sink_.RefuseNothing();
  PollNext();
  EXPECT_THAT(Told(), ElementsAre("preempted hosts"));
}

TEST_F(NoticesSourceTest, ServerThatFailsIsAReasonAndNotTheEndOfAMaintenance) {
  fake_.Set("instance/maintenance-event", "MIGRATE_ON_HOST_MAINTENANCE");
  PollNext();
  EXPECT_TRUE(source_->status().ok());
  fake_.TakePaths();
  for (const Manner manner : {Manner::kOverloaded, Manner::kOther, Manner::kRedirects}) {
    fake_.Behave(manner);
    PollNext(absl::Minutes(1));
    EXPECT_FALSE(source_->status().ok());
    EXPECT_THAT(Told(), IsEmpty());
    EXPECT_THAT(fake_.TakePaths(), SizeIs(1)) << "one question, not three";
    EXPECT_TRUE(std::isnan(Value("host_maintenance"))) << "what is not known is neither 0 nor 1";
  }
  fake_.Behave(Manner::kProper);
  PollNext();
  EXPECT_THAT(Told(), IsEmpty()) << "it was told";
  EXPECT_TRUE(source_->status().ok());
}

TEST_F(NoticesSourceTest, ServerThatKnowsNoNoticesHasNoSeries) {
  fake_.Behave(Manner::kConceals);
  PollNext();
  EXPECT_TRUE(source_->status().ok());
  EXPECT_THAT(sink_.samples, IsEmpty());
  EXPECT_THAT(Told(), IsEmpty());
}

TEST_F(NoticesSourceTest, WordThatIsNoneIsLeftAlone) {
  PollNext();
  fake_.Set("instance/preempted", "<html>");
  PollNext();
  EXPECT_THAT(Told(), IsEmpty());
  EXPECT_TRUE(source_->status().ok());
}

}  // namespace
}  // namespace tacho::agent
