// Jobs leave memory when they are idle and come back, with the same ids, when they are needed.
#include <atomic>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rocksdb/db.h"
#include "tests/storage/store_fixture.h"

namespace tacho::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

class JobLifecycleTest : public StoreFixture {
 protected:
  JobLifecycleTest() {
    options_.job_idle = absl::Hours(1);
    Reopen();
  }

  int64_t Now() const { return absl::ToUnixNanos(now_); }

  // Registers a job and records a row of it.
  LayoutPtr Record(const std::string& job, double value = 1) {
    LayoutPtr layout = Register(Definition(job, {"loss", "lr"}));
    EXPECT_TRUE(Append(layout, {Now()}, {1}, {value, value}).ok());
    return layout;
  }

  void PassTime(absl::Duration time) {
    now_ += time;
    EXPECT_TRUE(store_->UnloadIdleJobs().ok());
  }

  // Damages or removes records behind the store's back.
  void Edit(const std::function<void(rocksdb::DB*, rocksdb::ColumnFamilyHandle* index)>& edit) {
    EXPECT_TRUE(store_->Close().ok());
    store_.reset();
    rocksdb::DBOptions options;
    options.env = env_.get();
    std::vector<std::string> names;
    ASSERT_TRUE(rocksdb::DB::ListColumnFamilies(options, options_.path, &names).ok());
    std::vector<rocksdb::ColumnFamilyDescriptor> families;
    for (const std::string& name : names) {
      families.emplace_back(name, rocksdb::ColumnFamilyOptions());
    }
    std::vector<rocksdb::ColumnFamilyHandle*> handles;
    rocksdb::DB* opened = nullptr;
    ASSERT_TRUE(rocksdb::DB::Open(options, options_.path, families, &handles, &opened).ok());
    const std::unique_ptr<rocksdb::DB> db(opened);
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i] == "index") edit(db.get(), handles[i]);
    }
    for (auto* handle : handles) db->DestroyColumnFamilyHandle(handle);
  }
};

TEST_F(JobLifecycleTest, AnIdleJobLeavesMemoryAndItsHistoryStays) {
  const SeriesId id = Record("old")->series[0]->id;
  ASSERT_TRUE(store_->Seal().ok());
  PassTime(absl::Minutes(90));
  EXPECT_EQ(store_->Stats().jobs_in_memory, 0u);
  EXPECT_EQ(store_->Stats().series_in_memory, 0u);
  EXPECT_EQ(store_->Stats().layouts, 0u);
  EXPECT_EQ(store_->Stats().series, 2u) << "it is still known";
  const auto jobs = store_->Jobs();
  ASSERT_THAT(jobs, SizeIs(1));
  EXPECT_EQ(jobs[0].series, 2u);
  EXPECT_EQ(jobs[0].tasks, 1u);
  EXPECT_EQ(jobs[0].attempts, 1u);
  EXPECT_EQ(jobs[0].extent.last_time_ns, Now() - absl::ToInt64Nanoseconds(absl::Minutes(90)));
  EXPECT_EQ(store_->Stats().jobs_in_memory, 0u) << "listing jobs needs none of them";

  const SeriesPtr series = Find("old", "loss");
  ASSERT_NE(series, nullptr);
  EXPECT_EQ(series->id, id);
  EXPECT_THAT(ReadAll(series).values, ElementsAre(1));
  EXPECT_EQ((*store_->Latest(series))->value, 1);
  EXPECT_EQ(store_->Stats().jobs_in_memory, 1u);
  const auto detail = store_->FindJob("old");
  ASSERT_THAT(detail->tasks, SizeIs(1));
  EXPECT_EQ(detail->tasks[0].series, 2u);
  EXPECT_THAT(detail->metrics, SizeIs(2));

  PassTime(absl::Minutes(59));
  EXPECT_EQ(store_->Stats().jobs_in_memory, 1u) << "it was just asked for";
  PassTime(absl::Minutes(2));
  EXPECT_EQ(store_->Stats().jobs_in_memory, 0u) << "a series that is held does not keep it";
}

TEST_F(JobLifecycleTest, ManyEndedJobsLeaveOnlyTheirNames) {
  for (int job = 0; job < 200; ++job) Record(absl::StrCat("job-", job));
  ASSERT_TRUE(store_->Seal().ok());
  now_ += absl::Minutes(50);
  Record("running");
  PassTime(absl::Minutes(20));
  EXPECT_EQ(store_->Stats().jobs, 201u);
  EXPECT_EQ(store_->Stats().jobs_in_memory, 1u);
  EXPECT_EQ(store_->Stats().series_in_memory, 2u);
  size_t shown = 0;
  store_->VisitLatestRows([&](const LatestRow&) { ++shown; });
  EXPECT_EQ(shown, 1u);
  EXPECT_THAT(ReadAll(Find("job-77", "lr")).values, ElementsAre(1));
}

TEST_F(JobLifecycleTest, OpenRowsKeepAJobInMemory) {
  Record("job");
  PassTime(absl::Hours(2));
  EXPECT_EQ(store_->Stats().jobs_in_memory, 1u);
  ASSERT_TRUE(store_->Seal().ok());
  PassTime(absl::ZeroDuration());
  EXPECT_EQ(store_->Stats().jobs_in_memory, 0u);
}

TEST_F(JobLifecycleTest, AJobThatReappearsKeepsItsIds) {
  LayoutId layout = 0;
  std::vector<SeriesId> series;
  {
    const LayoutPtr before = Record("job");
    layout = before->id;
    for (const Series* one : before->series) series.push_back(one->id);
  }
  Record("other");
  ASSERT_TRUE(store_->Seal().ok());
  PassTime(absl::Hours(2));
  ASSERT_EQ(store_->Stats().jobs_in_memory, 0u);
  const LayoutPtr after = Register(Definition("job", {"loss", "lr"}));
  EXPECT_EQ(after->id, layout);
  EXPECT_EQ(after->series[0]->id, series[0]);
  EXPECT_EQ(after->series[1]->id, series[1]);
  const LayoutPtr more = Register(Definition("job", {"loss", "lr", "new"}));
  EXPECT_GT(more->series[2]->id, 4u) << "no id of the other job";
  ASSERT_TRUE(Append(more, {Now()}, {2}, {5, 6, 7}).ok());
  Reopen();
  EXPECT_THAT(ReadAll(Find("job", "loss")).values, ElementsAre(1, 5));
  EXPECT_EQ(store_->FindJob("job")->summary.series, 3u);
}

TEST_F(JobLifecycleTest, WhoHoldsALayoutGoesOnAppendingToIt) {
  const LayoutPtr layout = Record("job");
  ASSERT_TRUE(store_->Seal().ok());
  PassTime(absl::Hours(2));
  ASSERT_EQ(store_->Stats().jobs_in_memory, 0u);
  ASSERT_TRUE(Append(layout, {Now()}, {2}, {8, 9}).ok());
  EXPECT_EQ(store_->Stats().jobs_in_memory, 1u);
  EXPECT_EQ(Register(Definition("job", {"loss", "lr"})).get(), layout.get()) << "one, not two";
  EXPECT_THAT(ReadAll(Find("job", "loss")).values, ElementsAre(1, 8));
  EXPECT_EQ(store_->FindJob("job")->summary.extent.last_time_ns, Now());
}

TEST_F(JobLifecycleTest, AReaderGoesOnWhenItsJobLeaves) {
  Record("job");
  ASSERT_TRUE(store_->Seal().ok());
  const SeriesPtr series = Find("job", "loss");
  const auto reader = store_->Read(series, {});
  PassTime(absl::Hours(2));
  ASSERT_EQ(store_->Stats().jobs_in_memory, 0u);
  SampleBlock block;
  const auto more = NextBlock(reader, &block);
  ASSERT_TRUE(more.ok() && *more);
  EXPECT_THAT(block.values, ElementsAre(1));
  EXPECT_EQ(series->metric->name, "loss");
  EXPECT_EQ(series->source->job, "job");
  EXPECT_EQ(Find("job", "loss").get(), series.get()) << "the catalogue that is held comes back";
}

TEST_F(JobLifecycleTest, AfterOpeningOnlyJobsInUseAreInMemory) {
  Record("old");
  ASSERT_TRUE(store_->Seal().ok());
  now_ += absl::Hours(3);
  Record("recent");
  ASSERT_TRUE(store_->Seal().ok());
  Reopen();
  EXPECT_EQ(store_->Stats().jobs, 2u);
  EXPECT_EQ(store_->Stats().series, 4u) << "counted without being read";
  EXPECT_EQ(store_->Stats().jobs_in_memory, 1u);
  EXPECT_EQ(store_->Jobs()[0].name, "old");
  EXPECT_EQ(store_->Jobs()[0].hosts, 1u);
  EXPECT_THAT(ReadAll(Find("old", "lr")).values, ElementsAre(1));
}

TEST_F(JobLifecycleTest, LimitsCountTheJobAsAWholeAndTheStoreByMemory) {
  LimitPolicy::Options limits;
  limits.totals.series = 3;
  limits.series.series_per_job = 3;
  options_.limits = *LimitPolicy::Create(limits);
  Reopen();
  Record("old");
  ASSERT_TRUE(store_->Seal().ok());
  PassTime(absl::Hours(2));
  EXPECT_THAT(store_->RegisterLayout(Definition("new", {"a", "b", "c"}))->breaches, SizeIs(0));
  const auto again = store_->RegisterLayout(Definition("old", {"loss", "lr", "x"}));
  ASSERT_TRUE(again.ok());
  EXPECT_THAT(again->columns, ElementsAre(0, 1)) << "existing series pass";
  ASSERT_THAT(again->breaches, SizeIs(1));
  EXPECT_EQ(again->breaches[0].limit, Limit::kSeries);
  const auto whole = store_->RegisterLayout(Definition("new", {"a", "d"}));
  EXPECT_EQ(whole->breaches[0].limit, Limit::kJobSeries);
}

TEST_F(JobLifecycleTest, AnExpiredJobIsForgottenThoughItIsNotInMemory) {
  const LayoutPtr layout = Record("old");
  ASSERT_TRUE(store_->Seal().ok());
  options_.retention = absl::Hours(24);
  Reopen();
  now_ += absl::Hours(72);
  PassTime(absl::ZeroDuration());
  ASSERT_TRUE(store_->EnforceRetention().ok());
  EXPECT_EQ(store_->Stats().jobs, 0u);
  EXPECT_FALSE(store_->FindJob("old").has_value());
  EXPECT_EQ(Append(layout, {Now()}, {1}, {1, 1}).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_GT(Record("old")->series[0]->id, 2u) << "ids are not used again";
}

TEST_F(JobLifecycleTest, AttributesOfAnIdleJobAreMergedWithThoseItHas) {
  Record("job");
  const auto merge = [&](const char* name, const char* value) {
    return Wait([&](AppendDone done) {
      store_->AppendAttributes({}, {.job = "job", .values = {{name, value}}}, std::move(done));
    });
  };
  ASSERT_TRUE(merge("model", "mlp").ok());
  ASSERT_TRUE(store_->Seal().ok());
  PassTime(absl::Hours(2));
  ASSERT_TRUE(merge("batch", "8").ok());
  PassTime(absl::Hours(2));
  const auto job = store_->FindJob("job");
  ASSERT_THAT(job->attempts, SizeIs(1));
  EXPECT_THAT(job->attempts[0].attributes, SizeIs(2));
  EXPECT_EQ(job->summary.tasks, 1u);
}

TEST_F(JobLifecycleTest, ADamagedRecordOfAnIdleJobIsNamedWhenTheJobIsNeeded) {
  Record("damaged");
  Record("sound");
  now_ += absl::Hours(2);
  Edit([](rocksdb::DB* db, rocksdb::ColumnFamilyHandle* index) {
    std::string key = "L";
    key += std::string("\0\0\0\1\0\0\0\0\0\0\0\1", 12);
    std::string value;
    ASSERT_TRUE(db->Get(rocksdb::ReadOptions(), index, key, &value).ok());
    ASSERT_TRUE(db->Put(rocksdb::WriteOptions(), index, key, value + "x").ok());
  });
  auto store = Store::Open(options_);
  ASSERT_TRUE(store.ok()) << store.status();
  store_ = *std::move(store);
  const auto found = store_->FindSeries({.job = "damaged"}, 10);
  EXPECT_EQ(found.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_NE(found.status().ToString().find("4c00000001"), std::string::npos) << found.status();
  EXPECT_EQ(store_->RegisterLayout(Definition("damaged", {"loss"})).status().code(),
            absl::StatusCode::kDataLoss);
  EXPECT_THAT(ReadAll(Find("sound", "loss")).values, ElementsAre(1));
}

// For TSan, and for the ids: whatever leaves meanwhile, a definition keeps its series.
TEST_F(JobLifecycleTest, JobsLeaveWhileOthersRegisterFindAndAppend) {
  options_.now = absl::Now;
  options_.job_idle = absl::Nanoseconds(1);
  Reopen();
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  std::atomic<int> appended = 0;
  for (int thread = 0; thread < 2; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 60; ++i) {
        const std::string job = absl::StrCat("job-", i % 3);
        const LayoutPtr layout = Register(Definition(job, {"loss", "lr"}, thread));
        if (Append(layout, {absl::GetCurrentTimeNanos()}, {i}, {1, 2}).ok()) ++appended;
      }
    });
    threads.emplace_back([&] {
      while (!stop) {
        for (int job = 0; job < 3; ++job) {
          const auto found = store_->FindSeries({.job = absl::StrCat("job-", job)}, 100);
          ASSERT_TRUE(found.ok());
          for (const SeriesPtr& series : *found) EXPECT_FALSE(series->metric->name.empty());
        }
      }
    });
  }
  threads.emplace_back([&] {
    while (!stop) {
      EXPECT_TRUE(store_->Seal().ok());
      EXPECT_TRUE(store_->UnloadIdleJobs().ok());
    }
  });
  threads[0].join();
  threads[2].join();
  stop = true;
  for (std::thread& thread : threads) {
    if (thread.joinable()) thread.join();
  }
  EXPECT_EQ(appended, 120);
  EXPECT_EQ(store_->Stats().series, 12u);
  Reopen();
  size_t samples = 0;
  for (int job = 0; job < 3; ++job) {
    const auto found =
        store_->FindSeries({.job = absl::StrCat("job-", job), .metrics = {"loss"}}, 10);
    ASSERT_TRUE(found.ok());
    for (const SeriesPtr& series : *found) samples += ReadAll(series).size();
  }
  EXPECT_EQ(samples, 120u);
}

}  // namespace
}  // namespace tacho::storage
