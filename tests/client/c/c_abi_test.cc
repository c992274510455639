// The C functions, called as a C program does, and what a reader finds afterwards.
#include <sys/wait.h>

#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include "client/c/tacho.h"
#include "tests/client/ring/ring_test_support.h"

namespace tacho::client {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::FieldsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::StrEq;

int64_t FixedClock() { return 1'700'000'000'000'000'000; }

class CAbiTest : public testing::Test {
 protected:
  CAbiTest() {
    for (const char* name : {"TACHO_JOB", "TACHO_TASK", "TACHO_ATTEMPT", "TACHO_RING_DIR"}) {
      unsetenv(name);
    }
    options_.directory = directory_.path().c_str();
    options_.job = "job";
    options_.ring_bytes = kSmallRing;
    options_.now_unix_ns = &FixedClock;
  }
  ~CAbiTest() override { tacho_close(recorder_); }

  tacho_recorder* Open() { return recorder_ = tacho_open(&options_); }
  Everything Read() { return ReadAll(OpenReader(tacho_path(recorder_)).get()); }

  TestDirectory directory_;
  tacho_options options_ = TACHO_OPTIONS_INIT;
  tacho_recorder* recorder_ = nullptr;
};

TEST_F(CAbiTest, WhatIsSetIsReadBack) {
  options_.task = 5;
  options_.attempt = 2;
  tacho_recorder* const r = Open();
  ASSERT_EQ(tacho_recording(r), 1);
  EXPECT_THAT(tacho_error(r), StrEq(""));
  EXPECT_THAT(tacho_path(r), EndsWith("/job.5." + std::to_string(getpid()) + ".ring"));
  const tacho_metric loss = tacho_gauge(r, "loss", "1", "Training loss.");
  const tacho_metric examples = tacho_counter(r, "examples", nullptr, nullptr);
  EXPECT_EQ(tacho_gauge(r, "loss", "1", ""), loss);
  EXPECT_EQ(tacho_set(r, loss, 0.5), TACHO_OK);
  EXPECT_EQ(tacho_add(r, examples, 64), TACHO_OK);
  EXPECT_EQ(tacho_commit_step(r, 7), TACHO_OK);
  EXPECT_EQ(tacho_add(r, examples, 64), TACHO_OK);
  EXPECT_EQ(tacho_commit_step_at(r, 8, 1234), TACHO_OK);
  EXPECT_EQ(tacho_commit(r), TACHO_OK);
  const auto reader = OpenReader(tacho_path(r));
  EXPECT_EQ(reader->info().task, 5u);
  EXPECT_EQ(reader->info().attempt, 2u);
  const uint64_t none = 0x7ff0000000000002;
  EXPECT_THAT(Read().rows, ElementsAre(Row{FixedClock(), true, 7, {Bits(0.5), Bits(64)}},
                                       Row{1234, true, 8, {none, Bits(128)}},
                                       Row{FixedClock(), false, 0, {none, Bits(128)}}));
}

TEST_F(CAbiTest, OneCallSetsAndCommits) {
  tacho_recorder* const r = Open();
  const tacho_metric metrics[] = {tacho_gauge(r, "b", "", ""), tacho_gauge(r, "a", "", "")};
  const double values[] = {1.5, -0.0};
  EXPECT_EQ(tacho_log(r, 3, metrics, values, 2), TACHO_OK);
  EXPECT_EQ(tacho_set_values(r, metrics, values, 1), TACHO_OK);
  EXPECT_EQ(tacho_log(r, 4, metrics + 1, values, 1), TACHO_OK);
  EXPECT_THAT(Read().rows, ElementsAre(Row{FixedClock(), true, 3, {Bits(1.5), Bits(-0.0)}},
                                       Row{FixedClock(), true, 4, {Bits(1.5), Bits(1.5)}}));
}

int64_t monotonic_ns = 1;

TEST_F(CAbiTest, AStepIsARowWithItsPhases) {
  options_.now_monotonic_ns = [] { return monotonic_ns; };
  tacho_recorder* const r = Open();
  const tacho_metric loss = tacho_gauge(r, "loss", "", "");
  const tacho_metric data = tacho_declare_phase(r, "data");
  EXPECT_EQ(tacho_declare_phase(r, "data"), data);
  EXPECT_EQ(tacho_enter_phase(r, data), TACHO_REFUSED) << "no step";
  EXPECT_EQ(tacho_end_step(r), TACHO_REFUSED);
  EXPECT_EQ(tacho_begin_step(r, 7), TACHO_OK);
  EXPECT_EQ(tacho_begin_step(r, 8), TACHO_REFUSED);
  EXPECT_EQ(tacho_enter_phase(r, data), TACHO_OK);
  monotonic_ns += 250'000'000;
  EXPECT_EQ(tacho_leave_phase(r), TACHO_OK);
  EXPECT_EQ(tacho_set(r, loss, 0.5), TACHO_OK);
  EXPECT_EQ(tacho_enter_phase(r, TACHO_NO_METRIC), TACHO_REFUSED);
  monotonic_ns += 500'000'000;
  EXPECT_EQ(tacho_end_step(r), TACHO_OK);
  EXPECT_EQ(tacho_begin_step(r, 8), TACHO_OK);
  EXPECT_EQ(tacho_abandon_step(r), TACHO_OK);
  const Everything read = Read();
  ASSERT_THAT(read.rows, SizeIs(1));
  EXPECT_EQ(read.rows[0].step, 7);
  const auto reader = OpenReader(tacho_path(r));
  std::map<std::string, uint64_t> row;
  for (size_t i = 0; i < read.rows[0].bits.size(); ++i) {
    row[reader->metrics()[i].name] = read.rows[0].bits[i];
  }
  EXPECT_EQ(row["loss"], Bits(0.5));
  EXPECT_EQ(row["data_wait_seconds"], Bits(0.25));
  EXPECT_EQ(row["step_duration_seconds"], Bits(0.75));
}

TEST_F(CAbiTest, CollectivesOfAStep) {
  options_.now_monotonic_ns = [] { return monotonic_ns; };
  tacho_recorder* const r = Open();
  const tacho_collective reduce = tacho_declare_collective(r, "dp-allreduce", -1);
  const tacho_collective send = tacho_declare_collective(r, "send", 3);
  EXPECT_EQ(tacho_declare_collective(r, "send", 3), send);
  EXPECT_NE(send, reduce);
  EXPECT_EQ(tacho_refused(r), 0u);
  EXPECT_EQ(tacho_declare_collective(r, "", -1), TACHO_NO_COLLECTIVE);
  EXPECT_THAT(tacho_error(r), HasSubstr("the collective \"\" was refused"));
  EXPECT_EQ(tacho_declare_collective(r, "send", int64_t{1} << 40), TACHO_NO_COLLECTIVE);
  EXPECT_EQ(tacho_begin_collective(r, reduce, 1), TACHO_REFUSED) << "no step";
  EXPECT_EQ(tacho_begin_step(r, 7), TACHO_OK);
  EXPECT_EQ(tacho_begin_collective(r, TACHO_NO_COLLECTIVE, 1), TACHO_REFUSED);
  EXPECT_EQ(tacho_begin_collective(r, send + 1, 1), TACHO_REFUSED);
  EXPECT_EQ(tacho_begin_collective(r, reduce, 4096), TACHO_OK);
  EXPECT_EQ(tacho_begin_collective(r, send, 1), TACHO_REFUSED) << "within another one";
  monotonic_ns += 250'000'000;
  EXPECT_EQ(tacho_end_collective(r), TACHO_OK);
  EXPECT_EQ(tacho_begin_collective(r, send, 0), TACHO_OK);
  monotonic_ns += 500'000'000;
  EXPECT_EQ(tacho_end_step(r), TACHO_OK) << "it ends the collective";
  EXPECT_EQ(tacho_end_collective(r), TACHO_REFUSED);
  EXPECT_EQ(tacho_begin_collective(nullptr, reduce, 1), TACHO_INVALID);
  EXPECT_EQ(tacho_end_collective(nullptr), TACHO_INVALID);
  EXPECT_EQ(tacho_declare_collective(nullptr, "a", -1), TACHO_NO_COLLECTIVE);
  const Everything read = Read();
  ASSERT_THAT(read.rows, SizeIs(1));
  const auto reader = OpenReader(tacho_path(r));
  std::map<std::string, uint64_t> row;
  for (size_t i = 0; i < read.rows[0].bits.size(); ++i) {
    row[reader->metrics()[i].name] = read.rows[0].bits[i];
  }
  EXPECT_EQ(row["collective_dp_allreduce_seconds"], Bits(0.25));
  EXPECT_EQ(row["collective_dp_allreduce_bytes"], Bits(4096));
  EXPECT_EQ(row["collective_send_peer_3_seconds"], Bits(0.5));
  EXPECT_EQ(row["comm_wait_seconds"], Bits(0.75));
  EXPECT_EQ(row.count("collective_send_peer_3_bytes"), 0u);
}

TEST_F(CAbiTest, HistogramsCountObservations) {
  options_.histogram_interval_ns = 0;
  tacho_recorder* const r = Open();
  const tacho_metric loss = tacho_gauge(r, "loss", "", "");
  const tacho_histogram norms = tacho_declare_histogram(r, "norms", "1", "Norms.", 1, 10, 2);
  const double values[] = {0.5, 1, 5, 100, 7};
  EXPECT_EQ(tacho_observe(r, norms, values, 5), TACHO_OK);
  EXPECT_EQ(tacho_observe(r, TACHO_NO_HISTOGRAM, values, 1), TACHO_REFUSED);
  EXPECT_EQ(tacho_observe(r, norms + 1, values, 1), TACHO_REFUSED);
  EXPECT_EQ(tacho_observe(r, norms, nullptr, 1), TACHO_INVALID);
  EXPECT_EQ(tacho_observe(nullptr, norms, values, 1), TACHO_INVALID);
  EXPECT_EQ(tacho_declare_histogram(r, "loss", "", "", 0, 0, 0), TACHO_NO_HISTOGRAM);
  EXPECT_THAT(tacho_error(r), HasSubstr("\"loss\" was refused"));
  EXPECT_NE(tacho_declare_histogram(r, "defaults", nullptr, nullptr, 0, 0, 0), TACHO_NO_HISTOGRAM);
  tacho_set(r, loss, 1);
  EXPECT_EQ(tacho_commit_step(r, 1), TACHO_OK);
  const auto states = Read().states;
  ASSERT_THAT(states, SizeIs(1));
  EXPECT_THAT(states[0].counts, ElementsAre(2, 2, 1));
  EXPECT_EQ(states[0].sum, 113.5);
  EXPECT_THAT(OpenReader(tacho_path(r))->histograms()[0].bounds, ElementsAre(1, 10));
}

TEST_F(CAbiTest, EventsAndAttributes) {
  tacho_recorder* const r = Open();
  const tacho_field fields[] = {{"seconds", "1.5"}, {"path", nullptr}};
  EXPECT_EQ(tacho_event(r, "checkpoint_saved", "To disk.", fields, 2), TACHO_OK);
  EXPECT_EQ(tacho_event(r, "compiled", nullptr, nullptr, 0), TACHO_OK);
  EXPECT_EQ(tacho_event_at_step(r, 41, "text", "Here.", nullptr, 0), TACHO_OK);
  EXPECT_EQ(tacho_set_attribute(r, "model", "mlp"), TACHO_OK);
  const auto events = Read().events;
  ASSERT_THAT(events, SizeIs(3));
  EXPECT_EQ(events[1].step, std::nullopt);
  EXPECT_EQ(events[2].step, 41);
  EXPECT_EQ(events[0].kind, "checkpoint_saved");
  EXPECT_EQ(events[0].message, "To disk.");
  EXPECT_THAT(events[0].fields, ElementsAre(Pair("seconds", "1.5"), Pair("path", "")));
  const auto reader = OpenReader(tacho_path(r));
  EXPECT_THAT(reader->attributes(), ElementsAre(FieldsAre("model", "mlp")));
}

TEST_F(CAbiTest, TheGroupIsAnAttribute) {
  options_.group = "sweep";
  const auto reader = OpenReader(tacho_path(Open()));
  EXPECT_THAT(reader->attributes(), ElementsAre(FieldsAre("group", "sweep")));
}

TEST_F(CAbiTest, OptionsOfAnOlderHeaderHaveNoGroup) {
  options_.group = "not read";
  options_.size = offsetof(tacho_options, group);
  const auto reader = OpenReader(tacho_path(Open()));
  EXPECT_THAT(reader->attributes(), ::testing::IsEmpty());
}

TEST_F(CAbiTest, RefusalsAreToldAndCounted) {
  tacho_recorder* const r = Open();
  EXPECT_EQ(tacho_commit_step(r, 1), TACHO_REFUSED) << "no metric yet";
  const tacho_metric loss = tacho_gauge(r, "loss", "", "");
  EXPECT_EQ(tacho_counter(r, "loss", "", ""), TACHO_NO_METRIC);
  EXPECT_THAT(tacho_error(r), HasSubstr("\"loss\" was refused"));
  EXPECT_EQ(tacho_gauge(r, nullptr, "", ""), TACHO_NO_METRIC);
  EXPECT_EQ(tacho_set(r, TACHO_NO_METRIC, 1), TACHO_REFUSED);
  EXPECT_EQ(tacho_set(r, loss + 1, 1), TACHO_REFUSED);
  EXPECT_EQ(tacho_add(r, INT32_MAX, 1), TACHO_REFUSED);
  EXPECT_EQ(tacho_set_attribute(r, "", "x"), TACHO_REFUSED);
  EXPECT_EQ(tacho_event(r, "\n", "", nullptr, 0), TACHO_REFUSED);
  const std::vector<tacho_field> fields(33, {"name", "value"});
  EXPECT_EQ(tacho_event(r, "kind", "", fields.data(), 32), TACHO_OK);
  EXPECT_EQ(tacho_event(r, "kind", "", fields.data(), 33), TACHO_REFUSED);
  EXPECT_EQ(tacho_refused(r), 9u);
  const tacho_metric metrics[] = {TACHO_NO_METRIC, loss};
  const double values[] = {1, 2};
  EXPECT_EQ(tacho_log(r, 5, metrics, values, 2), TACHO_REFUSED);
  EXPECT_THAT(Read().rows, ElementsAre(Row{FixedClock(), true, 5, {Bits(2)}}))
      << "the others are recorded";
}

TEST_F(CAbiTest, NothingAtAllIsHarmless) {
  EXPECT_EQ(tacho_recording(nullptr), 0);
  EXPECT_EQ(tacho_gauge(nullptr, "loss", "", ""), TACHO_NO_METRIC);
  EXPECT_EQ(tacho_counter(nullptr, "loss", "", ""), TACHO_NO_METRIC);
  EXPECT_EQ(tacho_set(nullptr, 0, 1), TACHO_INVALID);
  EXPECT_EQ(tacho_add(nullptr, 0, 1), TACHO_INVALID);
  EXPECT_EQ(tacho_set_values(nullptr, nullptr, nullptr, 0), TACHO_INVALID);
  EXPECT_EQ(tacho_commit(nullptr), TACHO_INVALID);
  EXPECT_EQ(tacho_commit_step(nullptr, 0), TACHO_INVALID);
  EXPECT_EQ(tacho_commit_step_at(nullptr, 0, 0), TACHO_INVALID);
  EXPECT_EQ(tacho_log(nullptr, 0, nullptr, nullptr, 0), TACHO_INVALID);
  EXPECT_EQ(tacho_event(nullptr, "kind", "", nullptr, 0), TACHO_INVALID);
  EXPECT_EQ(tacho_event_at_step(nullptr, 1, "kind", "", nullptr, 0), TACHO_INVALID);
  EXPECT_EQ(tacho_set_attribute(nullptr, "key", "value"), TACHO_INVALID);
  EXPECT_EQ(tacho_refused(nullptr), 0u);
  EXPECT_THAT(tacho_path(nullptr), StrEq(""));
  EXPECT_THAT(tacho_error(nullptr), HasSubstr("NULL"));
  tacho_recorder* const r = Open();
  EXPECT_EQ(tacho_log(r, 0, nullptr, nullptr, 1), TACHO_INVALID);
  EXPECT_EQ(tacho_event(r, "kind", "", nullptr, 1), TACHO_INVALID);
}

TEST_F(CAbiTest, WithoutAJobItSaysWhy) {
  options_.job = nullptr;
  tacho_recorder* const r = Open();
  EXPECT_EQ(tacho_recording(r), 0);
  EXPECT_THAT(tacho_error(r), HasSubstr("TACHO_JOB"));
  EXPECT_THAT(tacho_path(r), StrEq(""));
  EXPECT_EQ(tacho_commit_step(r, 1), TACHO_NOT_RECORDING);
  EXPECT_EQ(tacho_gauge(r, "loss", "", ""), TACHO_NO_METRIC);
  EXPECT_THAT(tacho_error(r), HasSubstr("TACHO_JOB")) << "still";
}

// A program that was built with an older header has fewer fields; with a newer one, more.
TEST_F(CAbiTest, OptionsOfOtherVersions) {
  setenv("TACHO_JOB", "from_environment", 1);
  options_.size = offsetof(tacho_options, job);
  tacho_recorder* const older = Open();
  EXPECT_EQ(OpenReader(tacho_path(older))->info().job, "from_environment");
  tacho_close(older);
  struct {
    tacho_options known;
    uint64_t unknown;
  } newer = {options_, UINT64_MAX};
  newer.known.size = sizeof(newer);
  recorder_ = tacho_open(&newer.known);
  EXPECT_EQ(OpenReader(tacho_path(recorder_))->info().job, "job");
  unsetenv("TACHO_JOB");
}

TEST_F(CAbiTest, AChildOfForkRecordsNothing) {
  tacho_recorder* const r = Open();
  const tacho_metric loss = tacho_gauge(r, "loss", "", "");
  const double value = 1;
  tacho_log(r, 1, &loss, &value, 1);
  const pid_t child = fork();
  if (child == 0) {
    const bool quiet = tacho_recording(r) == 0 && tacho_log(r, 2, &loss, &value, 1) == TACHO_OK &&
                       tacho_event(r, "child", "", nullptr, 0) == TACHO_OK &&
                       tacho_set_attribute(r, "key", "value") == TACHO_OK;
    tacho_close(r);
    _exit(quiet ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(tacho_log(r, 3, &loss, &value, 1), TACHO_OK);
  const Everything read = Read();
  EXPECT_THAT(read.rows, SizeIs(2));
  EXPECT_THAT(read.events, IsEmpty());
  EXPECT_THAT(OpenReader(tacho_path(r))->attributes(), IsEmpty());
}

}  // namespace
}  // namespace tacho::client
