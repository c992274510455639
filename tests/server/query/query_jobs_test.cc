// Jobs, attempts and what is in them, over the real store.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/query/lists/event_listing.h"
#include "server/query/lists/job_detail.h"
#include "server/query/lists/job_listing.h"
#include "server/query/lists/listings.h"
#include "server/query/read/job_state.h"
#include "tests/storage/store_fixture.h"

namespace tacho::server::query {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int64_t kSecond = 1'000'000'000;

class QueryJobsTest : public storage::StoreFixture {
 protected:
  QueryJobsTest() {
    options_.job_idle = absl::Hours(1);
    Reopen();
  }

  int64_t Ago(int64_t seconds) const { return absl::ToUnixNanos(now_) - seconds * kSecond; }

  // A row of a series with a chip, so old.
  void Row(const std::string& job, int64_t seconds_ago, uint32_t attempt = 0, uint32_t task = 0,
           int64_t step = 1) {
    storage::LayoutDefinition definition = Definition(job, {"loss"}, task, attempt);
    definition.series.push_back(
        {{"duty", storage::MetricType::kGauge, "1", ""}, {{"chip", absl::StrCat(task)}}});
    ASSERT_TRUE(Append(Register(definition), {Ago(seconds_ago)}, {step}, {1, 1}).ok());
  }
  void Event(const std::string& job, int64_t seconds_ago, const std::string& kind,
             uint32_t attempt = 0, std::optional<int64_t> step = std::nullopt, uint32_t task = 0) {
    storage::Event event;
    event.source = {job, task, attempt, absl::StrCat("host-", task)};
    event.message = absl::StrCat(kind, " ", seconds_ago);
    event.time_ns = Ago(seconds_ago);
    event.kind = kind;
    event.step = step;
    ASSERT_TRUE(Wait([&](storage::AppendDone done) {
                  store_->AppendEvent({}, event, std::move(done));
                }).ok());
  }
  void Attribute(const std::string& job, uint32_t attempt, const std::string& value) {
    ASSERT_TRUE(Wait([&](storage::AppendDone done) {
                  store_->AppendAttributes({}, {job, attempt, {{"model", value}}}, std::move(done));
                }).ok());
  }
  std::vector<std::string> Names(const v1::ListJobsRequest& request) {
    v1::ListJobsResponse response;
    absl::Status status = ListJobs(*store_, request, now_, control_, &response);
    EXPECT_TRUE(status.ok()) << status;
    token_ = response.next_page_token();
    std::vector<std::string> names;
    for (const v1::Job& job : response.jobs()) names.push_back(job.name());
    return names;
  }
  v1::GetJobResponse Get(const std::string& job, uint32_t max_entities = 0) {
    v1::GetJobRequest request;
    request.set_job(job);
    request.set_max_entities(max_entities);
    v1::GetJobResponse response;
    absl::Status status = GetJob(*store_, request, now_, control_, &response);
    EXPECT_TRUE(status.ok()) << status;
    return response;
  }
  v1::JobState StateInList(const std::string& job) {
    v1::ListJobsRequest request;
    request.set_name_pattern(job);
    v1::ListJobsResponse response;
    EXPECT_TRUE(ListJobs(*store_, request, now_, control_, &response).ok());
    return response.jobs_size() == 1 ? response.jobs(0).state() : v1::JOB_STATE_UNSPECIFIED;
  }
  std::vector<std::string> Values(const std::string& label, uint64_t max_values = 0) {
    v1::LabelValuesRequest request;
    request.mutable_selector()->set_job("j");
    request.set_label(label);
    request.set_max_values(max_values);
    v1::LabelValuesResponse response;
    absl::Status status = LabelValues(*store_, request, 100, control_, &response);
    if (!status.ok()) return {std::string(status.message())};
    std::vector<std::string> values;
    for (const auto& value : response.values()) {
      values.push_back(absl::StrCat(value.value(), ":", value.series()));
    }
    return values;
  }

  QueryControl control_;
  std::string token_;  // The newest page's.
};

TEST_F(QueryJobsTest, AJobRunsIsSilentOrHasEnded) {
  Row("running", 299);
  Row("silent", 301);
  Row("ended", 10);
  Event("ended", 70, "ended");  // A minute before its last row.
  Row("ended early", 10);
  Event("ended early", 71, "ended");
  Row("another event", 10);
  Event("another event", 5, "preempted");
  const std::pair<const char*, v1::JobState> expected[] = {
      {"running", v1::JOB_STATE_RUNNING},
      {"silent", v1::JOB_STATE_SILENT},
      {"ended", v1::JOB_STATE_ENDED},
      {"ended early", v1::JOB_STATE_RUNNING},
      {"another event", v1::JOB_STATE_RUNNING}};
  for (const auto& [job, state] : expected) {
    EXPECT_EQ(StateInList(job), state) << job;
    EXPECT_EQ(Get(job).job().state(), state) << job;
  }
}

// Else its owner finds nothing, and no reason.
TEST_F(QueryJobsTest, AJobOfWhichEverythingWasRefusedIsFoundWithTheReasons) {
  limits::JobRefusals refusals;
  const auto refuse = [&](const std::string& job, const std::string& reason, uint64_t samples) {
    refusals.Add(job, reason, samples, now_, [](limits::JobRefusal* refusal) {
      refusal->example = "loss";
      refusal->detail = "do this";
    });
  };
  refuse("refused", "too_old", 3);
  refuse("refused", "future", 4);
  refuse("partly", "too_old", 1);
  refuse("hidden", "too_old", 1);
  Row("partly", 10);
  Row("whole", 10);
  security::Rights::Options own;
  own.jobs = std::make_shared<const RE2>("refused|partly|whole");
  const auto list = [&](v1::ListJobsRequest request) {
    v1::ListJobsResponse response;
    EXPECT_TRUE(
        ListJobs(*store_, request, now_, control_, &response, security::Rights(own), &refusals)
            .ok());
    std::vector<std::string> jobs;
    for (const v1::Job& job : response.jobs()) {
      jobs.push_back(absl::StrCat(job.name(), " ", job.refused_samples(), " ", job.state()));
    }
    return jobs;
  };
  v1::ListJobsRequest request;
  const std::string refused = absl::StrCat("refused 7 ", v1::JOB_STATE_SILENT);
  EXPECT_THAT(list(request), ElementsAre(absl::StrCat("partly 1 ", v1::JOB_STATE_RUNNING),
                                         absl::StrCat("whole 0 ", v1::JOB_STATE_RUNNING), refused));
  request.add_states(v1::JOB_STATE_SILENT);
  EXPECT_THAT(list(request), ElementsAre(refused));
  request.set_name_pattern("w.*");
  EXPECT_THAT(list(request), IsEmpty());

  v1::GetJobRequest get;
  get.set_job("refused");
  v1::GetJobResponse response;
  ASSERT_TRUE(GetJob(*store_, get, now_, control_, &response, &refusals).ok());
  EXPECT_EQ(response.job().name(), "refused");
  EXPECT_EQ(response.job().refused_samples(), 7u);
  ASSERT_EQ(response.refusals_size(), 2);
  EXPECT_EQ(response.refusals(0).reason(), "future");
  EXPECT_EQ(response.refusals(0).samples(), 4u);
  EXPECT_EQ(response.refusals(0).detail(), "do this");
  get.set_job("unknown");
  EXPECT_EQ(GetJob(*store_, get, now_, control_, &response, &refusals).code(),
            absl::StatusCode::kNotFound);
}

// A single sample that came late would else list a job for ever that expired long ago.
TEST_F(QueryJobsTest, AJobThatIsNotStoredIsForgottenADayAfterItsLastRefusal) {
  limits::JobRefusals refusals;
  const auto refuse = [&](const std::string& job, absl::Duration ago) {
    refusals.Add(job, "too_old", 1, now_ - ago, [](limits::JobRefusal*) {});
  };
  constexpr absl::Duration kDay = limits::JobRefusals::kRecent;
  refuse("now", absl::Seconds(1));
  refuse("hour", absl::Hours(1));
  refuse("day", kDay);
  refuse("old", kDay + absl::Nanoseconds(1));
  refuse("stored", 2 * kDay);
  refuse("attributes", absl::Seconds(1));
  Row("stored", 7200);
  Attribute("attributes", 0, "m");
  const auto list = [&](absl::Duration seen_within) {
    v1::ListJobsRequest request;
    request.set_seen_within_ns(absl::ToInt64Nanoseconds(seen_within));
    v1::ListJobsResponse response;
    EXPECT_TRUE(ListJobs(*store_, request, now_, control_, &response,
                         *security::Rights::Everything(), &refusals)
                    .ok());
    std::vector<std::string> jobs;
    for (const v1::Job& job : response.jobs()) {
      jobs.push_back(absl::StrCat(job.name(), " ", job.refused_samples()));
    }
    return jobs;
  };
  EXPECT_THAT(list(absl::ZeroDuration()),
              ElementsAre("stored 1", "attributes 1", "day 1", "hour 1", "now 1"));
  EXPECT_THAT(list(absl::Hours(1)), ElementsAre("attributes 1", "hour 1", "now 1"));
  EXPECT_THAT(list(absl::Minutes(1)), ElementsAre("attributes 1", "now 1"));
  const auto get = [&](const std::string& job) {
    v1::GetJobRequest request;
    request.set_job(job);
    v1::GetJobResponse response;
    const absl::Status status = GetJob(*store_, request, now_, control_, &response, &refusals);
    return status.ok() ? absl::StatusCode::kOk : status.code();
  };
  EXPECT_EQ(get("day"), absl::StatusCode::kOk);
  EXPECT_EQ(get("old"), absl::StatusCode::kNotFound);
  EXPECT_EQ(get("stored"), absl::StatusCode::kOk);
}

TEST_F(QueryJobsTest, TheEndOfAnOldAttemptIsNotTheEndOfTheJob) {
  Row("j", 200, 0);
  Event("j", 200, "ended", 0);
  Row("j", 190, 1);
  EXPECT_EQ(StateInList("j"), v1::JOB_STATE_RUNNING);
  const v1::GetJobResponse job = Get("j");
  ASSERT_EQ(job.attempts_size(), 2);
  EXPECT_EQ(job.attempts(0).state(), v1::JOB_STATE_ENDED);
  EXPECT_EQ(job.attempts(0).ended_unix_ns(), Ago(200));
  EXPECT_EQ(job.attempts(1).state(), v1::JOB_STATE_RUNNING);
  EXPECT_FALSE(job.attempts(1).has_ended_unix_ns());
  Event("j", 189, "ended", 1);
  EXPECT_EQ(StateInList("j"), v1::JOB_STATE_ENDED);
}

TEST_F(QueryJobsTest, TasksEndOneByOne) {
  for (const uint32_t task : {0, 1, 2, 3}) Row("j", 400, 0, task);
  Row("j", 100, 1, 0);
  Row("j", 100, 1, 1);
  Row("j", 100, 1, 2);
  Event("j", 399, "ended", 0, std::nullopt, 0);  // Ends an attempt before.
  Event("j", 161, "ended", 1, std::nullopt, 1);  // Rows came more than a minute later.
  Event("j", 160, "ended", 1, std::nullopt, 2);
  Event("j", 101, "ended", 1, std::nullopt, 2);
  const v1::GetJobResponse job = Get("j");
  ASSERT_EQ(job.tasks_size(), 4);
  EXPECT_EQ(job.tasks(0).state(), v1::JOB_STATE_RUNNING);
  EXPECT_FALSE(job.tasks(0).has_ended_unix_ns());
  EXPECT_EQ(job.tasks(1).state(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(job.tasks(2).state(), v1::JOB_STATE_ENDED);
  EXPECT_EQ(job.tasks(2).ended_unix_ns(), Ago(101));
  EXPECT_EQ(job.tasks(2).end_message(), "ended 101");
  EXPECT_EQ(job.tasks(3).state(), v1::JOB_STATE_SILENT);
  ASSERT_EQ(job.chips_size(), 4);
  EXPECT_EQ(job.chips(1).first_seen_unix_ns(), Ago(400));
  EXPECT_EQ(job.chips(1).last_seen_unix_ns(), Ago(100));
}

TEST_F(QueryJobsTest, AJobEndsWithTheLastOfItsTasks) {
  for (const uint32_t task : {0, 1, 2}) Row("j", 30, 0, task);
  Event("j", 29, "ended", 0, std::nullopt, 0);
  Event("j", 28, "exited", 0, std::nullopt, 1);
  EXPECT_EQ(StateInList("j"), v1::JOB_STATE_RUNNING) << "task 2 goes on";
  EXPECT_EQ(Get("j").attempts(0).state(), v1::JOB_STATE_RUNNING);
  Event("j", 5, "ended", 0, std::nullopt, 2);
  EXPECT_EQ(StateInList("j"), v1::JOB_STATE_ENDED);
  EXPECT_EQ(Get("j").attempts(0).state(), v1::JOB_STATE_ENDED);
  EXPECT_EQ(Get("j").tasks(1).state(), v1::JOB_STATE_ENDED);
  EXPECT_EQ(Get("j").tasks(1).end_message(), "exited 28");
}

TEST_F(QueryJobsTest, AJobWhoseOtherTasksWentSilentHasEnded) {
  for (const uint32_t task : {0, 1}) Row("j", 301, 0, task);
  Event("j", 300, "attempt_started", 0, std::nullopt, 1);
  EXPECT_EQ(StateInList("j"), v1::JOB_STATE_SILENT);
  Event("j", 299, "ended", 0, std::nullopt, 0);
  EXPECT_EQ(StateInList("j"), v1::JOB_STATE_ENDED);
}

TEST_F(QueryJobsTest, OneTaskThatExitsBeforeTheOthersSendRowsDoesNotEndTheJob) {
  Row("j", 40, 0, 0);
  for (const uint32_t task : {0, 1, 2}) Event("j", 50, "attempt_started", 0, std::nullopt, task);
  Event("j", 30, "exited", 0, std::nullopt, 0);
  EXPECT_EQ(StateInList("j"), v1::JOB_STATE_RUNNING);
  for (const uint32_t task : {0, 1}) Row("two", 100, 0, task);
  Attribute("two", 1, "big");
  for (const uint32_t task : {0, 1}) Event("two", 50, "attempt_started", 1, std::nullopt, task);
  Event("two", 30, "exited", 1, std::nullopt, 0);
  EXPECT_EQ(StateInList("two"), v1::JOB_STATE_RUNNING);
}

TEST_F(QueryJobsTest, ATaskThatBeginsAgainAtOnceHasNotEnded) {
  for (const char* job : {"one", "two"}) {
    Row(job, 30, 0, 0);
    if (job[0] == 't') Row(job, 30, 0, 1);
    Event(job, 29, "attempt_started", 0, std::nullopt, 0);
    Event(job, 20, "exited", 0, std::nullopt, 0);
    Event(job, 20, "ended", 0, std::nullopt, 1);
    EXPECT_EQ(StateInList(job), v1::JOB_STATE_ENDED) << job;
    Event(job, 10, "attempt_started", 0, std::nullopt, 0);
    EXPECT_EQ(StateInList(job), v1::JOB_STATE_RUNNING) << job;
    EXPECT_EQ(Get(job).tasks(0).state(), v1::JOB_STATE_RUNNING) << job;
  }
}

TEST_F(QueryJobsTest, AnAttemptThatDidNotEndIsReplacedByTheNext) {
  Row("j", 100, 0);
  Row("j", 10, 3);
  const v1::GetJobResponse job = Get("j");
  EXPECT_EQ(job.attempts(0).state(), v1::JOB_STATE_REPLACED);
  EXPECT_EQ(job.attempts(1).state(), v1::JOB_STATE_RUNNING);
}

TEST_F(QueryJobsTest, ListsByStateHostAndAttribute) {
  Row("a", 10, 0, /*task=*/1);
  Row("b", 10, 0, /*task=*/2);
  Row("b", 10, 1, /*task=*/3);
  Attribute("a", 0, "small");
  Attribute("b", 0, "small");
  Attribute("b", 1, "large");
  Row("c", 4'000);
  for (const bool in_memory : {true, false}) {
    SCOPED_TRACE(in_memory);
    if (!in_memory) {
      ASSERT_TRUE(store_->Seal().ok());
      now_ += absl::Hours(2);
      ASSERT_TRUE(store_->UnloadIdleJobs().ok());
    }
    v1::ListJobsRequest request;
    request.add_states(in_memory ? v1::JOB_STATE_RUNNING : v1::JOB_STATE_SILENT);
    EXPECT_EQ(Names(request).size(), in_memory ? 2u : 3u);
    request.Clear();
    auto* matcher = request.add_matchers();
    matcher->set_label("host");
    matcher->set_op(v1::Matcher::OP_EQUAL);
    matcher->set_value("host-2");
    EXPECT_THAT(Names(request), ElementsAre("b")) << "a host of an earlier attempt";
    matcher->set_label("model");
    matcher->set_value("small");
    EXPECT_THAT(Names(request), ElementsAre("a")) << "of the latest attempt";
    matcher->set_value("");
    EXPECT_THAT(Names(request), ElementsAre("c")) << "it has no such attribute";
    EXPECT_EQ(store_->Stats().jobs_in_memory, in_memory ? 3u : 0u) << "listing loads no job";
  }
}

TEST_F(QueryJobsTest, PagesOfAConditionHoldAsManyAsAskedAndMissNone) {
  for (int i = 0; i < 25; ++i) {
    const std::string job = absl::StrCat("job-", i < 10 ? "0" : "", i);
    Row(job, 10);
    if (i % 3 == 0) Event(job, 5, "ended");
  }
  v1::ListJobsRequest request;
  request.add_states(v1::JOB_STATE_ENDED);
  request.set_page_size(4);
  EXPECT_THAT(Names(request), ElementsAre("job-00", "job-03", "job-06", "job-09"));
  request.set_page_token(token_);
  EXPECT_THAT(Names(request), ElementsAre("job-12", "job-15", "job-18", "job-21"));
  request.set_page_token(token_);
  EXPECT_THAT(Names(request), ElementsAre("job-24"));
  EXPECT_EQ(token_, "");
}

TEST_F(QueryJobsTest, ListsJobsWhoseSamplesMayLieInARange) {
  Row("j", 500);
  Row("j", 300);
  const auto listed = [&](int64_t begin_ns, int64_t end_ns) {
    v1::ListJobsRequest request;
    request.mutable_time()->set_begin_unix_ns(begin_ns);
    request.mutable_time()->set_end_unix_ns(end_ns);
    return Names(request).size();
  };
  EXPECT_EQ(listed(Ago(400), Ago(390)), 1u) << "between its first and its last";
  EXPECT_EQ(listed(Ago(600), Ago(500)), 0u) << "the end is excluded";
  EXPECT_EQ(listed(Ago(600), Ago(500) + 1), 1u);
  EXPECT_EQ(listed(Ago(300), 0), 1u);
  EXPECT_EQ(listed(Ago(300) + 1, 0), 0u);
}

TEST_F(QueryJobsTest, TellsOfAtMostSoManyEntitiesAndHowManyThereAre) {
  for (uint32_t task = 0; task < 5; ++task) Row("j", 10, task % 2, task);
  const v1::GetJobResponse all = Get("j");
  EXPECT_EQ(all.tasks_size(), 5);
  EXPECT_EQ(all.hosts_size(), 5);
  EXPECT_EQ(all.chips_size(), 5);
  EXPECT_EQ(all.job().metrics(), 2u);
  EXPECT_EQ(all.attempts(0).tasks(), 3u);
  EXPECT_EQ(all.attempts(1).hosts(), 2u);
  EXPECT_EQ(all.chips(3).chip(), "3");
  EXPECT_EQ(all.chips(3).task(), 3u);
  EXPECT_EQ(all.chips(3).last_seen_unix_ns(), Ago(10));
  const v1::GetJobResponse some = Get("j", 2);
  EXPECT_EQ(some.tasks_size(), 2);
  EXPECT_EQ(some.hosts_size(), 2);
  EXPECT_EQ(some.chips_size(), 2);
  EXPECT_EQ(some.incarnations_size(), 2);
  EXPECT_EQ(some.chips_total(), 5u);
  EXPECT_EQ(some.incarnations_total(), 5u);
  EXPECT_EQ(some.job().tasks(), 5u);
}

TEST_F(QueryJobsTest, TellsWhichStepsWereSuperseded) {
  for (const int64_t step : {0, 50, 100}) Row("j", 100 - step / 10, 0, 0, step);
  for (const int64_t step : {60, 120}) Row("j", 50 - step / 10, 1, 0, step);
  const v1::GetJobResponse job = Get("j");
  ASSERT_EQ(job.timeline_size(), 2);
  EXPECT_EQ(job.timeline(0).last_step(), 59);
  EXPECT_EQ(job.timeline(1).attempt(), 1u);
  ASSERT_EQ(job.attempts(0).superseded_size(), 1);
  EXPECT_EQ(job.attempts(0).superseded(0).begin(), 60);
  EXPECT_EQ(job.attempts(0).superseded(0).end(), 100);
  EXPECT_THAT(job.attempts(1).superseded(), IsEmpty());
}

TEST_F(QueryJobsTest, CountsTheSeriesOfEachValue) {
  for (uint32_t task = 0; task < 11; ++task) Row("j", 10, task % 2, task);
  EXPECT_THAT(Values("metric"), ElementsAre("duty:11", "loss:11"));
  EXPECT_THAT(Values("attempt"), ElementsAre("0:0", "1:0"));
  EXPECT_THAT(Values(""), ElementsAre("chip:11"));
  const std::vector<std::string> tasks = Values("task");
  ASSERT_EQ(tasks.size(), 11u);
  EXPECT_EQ(tasks[2], "2:2") << "by number";
  EXPECT_EQ(tasks[10], "10:2");
  EXPECT_THAT(Values("none"), IsEmpty());
  EXPECT_EQ(Values("host", 11).size(), 11u);
  EXPECT_THAT(Values("host", 10), ElementsAre(HasSubstr("max_values = 10")));
}

TEST_F(QueryJobsTest, ListsMetricsByPattern) {
  Row("j", 10);
  v1::ListMetricsRequest request;
  request.set_job("j");
  request.set_name_pattern("d.*");
  v1::ListMetricsResponse response;
  ASSERT_TRUE(ListMetrics(*store_, request, &response).ok());
  ASSERT_EQ(response.metrics_size(), 1);
  EXPECT_THAT(response.metrics(0).labels(), ElementsAre("chip"));
  request.set_job("k");
  EXPECT_EQ(ListMetrics(*store_, request, &response).code(), absl::StatusCode::kNotFound);
  request.set_name_pattern("(");
  EXPECT_EQ(ListMetrics(*store_, request, &response).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(QueryJobsTest, ListsEventsByStepAttemptAndFromTheEnd) {
  for (const int64_t step : {0, 100}) Row("j", 100, 0, 0, step);
  for (const int64_t step : {60, 120}) Row("j", 50, 1, 0, step);
  Event("j", 90, "saved", 0, 50);
  Event("j", 80, "saved", 0, 80);
  Event("j", 70, "lost", 0);
  Event("j", 60, "saved", 1, 80);
  const auto steps = [&](auto change) {
    v1::ListEventsRequest request;
    request.set_job("j");
    change(&request);
    std::vector<int64_t> found;  // Attempt and step in one; -1: no step.
    absl::Status status =
        ListEvents(*store_, request, control_, [&](const v1::ListEventsResponse& piece) {
          for (const auto& event : piece.events()) {
            found.push_back(event.has_step() ? event.source().attempt() * 1000 + event.step() : -1);
          }
          return absl::OkStatus();
        });
    EXPECT_TRUE(status.ok()) << status;
    return found;
  };
  EXPECT_THAT(steps([](auto*) {}), ElementsAre(50, 80, -1, 1080));
  EXPECT_THAT(steps([](auto* r) { r->mutable_steps()->set_begin(60); }), ElementsAre(80, 1080));
  EXPECT_THAT(steps([](auto* r) { r->set_attempts(v1::ATTEMPTS_EFFECTIVE); }),
              ElementsAre(50, -1, 1080))
      << "what attempt 0 did at step 80 was superseded";
  EXPECT_THAT(steps([](auto* r) { r->set_newest(2); }), ElementsAre(-1, 1080));
  EXPECT_THAT(steps([](auto* r) {
                r->set_newest(1);
                r->add_kinds("lost");
                r->set_kind("other");
              }),
              ElementsAre(-1));
}

}  // namespace
}  // namespace tacho::server::query
