#include "agent/sources/identity/host_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "agent/sources/identity/identity_source.h"
#include "tests/agent/recording_sink.h"
#include "tests/support/fake_metadata_server.h"
#include "tests/support/tfevents_writer.h"

namespace tacho::agent {
namespace {

using ::tacho::testing::FakeMetadataServer;
using ::tacho::testing::WriteFile;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

using Manner = FakeMetadataServer::Manner;

std::string Text(const HostFacts& facts, const std::string& label) {
  const auto found = facts.find(label);
  return found == facts.end() ? ""
                              : absl::StrCat(found->second.value, " from ", found->second.from);
}

HostFacts OfEnvironment(const std::map<std::string, std::string>& environment) {
  HostFacts facts;
  AddFactsOfEnvironment(
      [&environment](const char* name) -> const char* {
        const auto variable = environment.find(name);
        return variable == environment.end() ? nullptr : variable->second.c_str();
      },
      &facts);
  return facts;
}

MetadataServer ServerAt(const FakeMetadataServer& fake,
                        absl::Duration timeout = absl::Seconds(30)) {
  return MetadataServer(*ParseHttpUrl(absl::StrCat("http://", fake.authority())), timeout);
}

TEST(HostFactsTest, EnvironmentOfAPodAndOfSlurm) {
  const HostFacts pod = OfEnvironment({{"NODE_NAME", "gke-tpu-1"},
                                       {"POD_NAME", "bert-0-3"},
                                       {"POD_NAMESPACE", "research"},
                                       {"JOBSET_NAME", "bert"},
                                       {"TPU_WORKER_ID", "3"},
                                       {"TPU_TOPOLOGY", "4x4"},
                                       {"HOME", "/root"}});
  EXPECT_THAT(pod, SizeIs(6));
  EXPECT_EQ(Text(pod, "node"), "gke-tpu-1 from NODE_NAME");
  EXPECT_EQ(Text(pod, "jobset"), "bert from JOBSET_NAME");
  EXPECT_EQ(Text(pod, "tpu_worker"), "3 from TPU_WORKER_ID");
  const HostFacts slurm = OfEnvironment({{"SLURM_JOB_ID", "77"}, {"SLURMD_NODENAME", "n12"}});
  EXPECT_EQ(Text(slurm, "slurm_job"), "77 from SLURM_JOB_ID");
  EXPECT_EQ(Text(slurm, "node"), "n12 from SLURMD_NODENAME");
}

TEST(HostFactsTest, WhatIsNoNameIsLeftOut) {
  EXPECT_THAT(OfEnvironment({{"POD_NAME", ""},
                             {"NODE_NAME", "   "},
                             {"TPU_NAME",
                              "a\x01"
                              "b"},
                             {"TPU_TOPOLOGY",
                              "4\xc3\x97"
                              "4"},
                             {"JOBSET_NAME", std::string(kMaxFactBytes + 1, 'j')}}),
              IsEmpty());
  EXPECT_THAT(OfEnvironment({{"JOBSET_NAME", std::string(kMaxFactBytes, 'j')}}), SizeIs(1));
}

TEST(HostFactsTest, FilesOfAPod) {
  const std::string root = absl::StrCat(::testing::TempDir(), "/host_facts_pod");
  WriteFile(root + "/info/labels", "jobset.sigs.k8s.io/jobset-name=\"bert\"\napp=\"x\"\n");
  WriteFile(root + "/info/name", "bert-0-3\n");
  WriteFile(root + "/account/namespace", "research");
  HostFacts facts;
  AddFactsOfPod(root + "/info", root + "/account", &facts);
  EXPECT_EQ(Text(facts, "jobset"),
            absl::StrCat("bert from ", root, "/info/labels jobset.sigs.k8s.io/jobset-name"));
  EXPECT_EQ(Text(facts, "pod"), absl::StrCat("bert-0-3 from ", root, "/info/name"));
  EXPECT_EQ(Text(facts, "namespace"), absl::StrCat("research from ", root, "/account/namespace"));
  HostFacts none;
  AddFactsOfPod("", root + "/missing", &none);
  EXPECT_THAT(none, IsEmpty());
}

TEST(HostFactsTest, MetadataOfATpuVm) {
  FakeMetadataServer fake;
  fake.SetTpuVm();
  const MetadataFacts told = AskMetadata(ServerAt(fake), absl::Seconds(60));
  EXPECT_TRUE(told.status.ok()) << told.status;
  EXPECT_EQ(Text(told.facts, "zone"), "europe-west4-b from instance/zone");
  EXPECT_EQ(Text(told.facts, "machine_type"), "ct4p-hightpu-4t from instance/machine-type");
  EXPECT_EQ(Text(told.facts, "instance_id"), "4520031799277581759 from instance/id");
  EXPECT_EQ(Text(told.facts, "accelerator_type"),
            "v4-256 from instance/attributes/accelerator-type");
  EXPECT_EQ(Text(told.facts, "tpu_topology"), "4x4x8 from tpu-env TOPOLOGY");
  EXPECT_EQ(Text(told.facts, "tpu_worker"), "3 from instance/attributes/agent-worker-number");
  EXPECT_EQ(Text(told.facts, "tpu_slice"), "1 from tpu-env MEGASCALE_SLICE_ID");
  EXPECT_EQ(Text(told.facts, "preemptible"), "true from instance/scheduling/preemptible");
  EXPECT_EQ(told.tpu_metrics_ports, "8431,8432,8433,8434");
}

TEST(HostFactsTest, MetadataOfAnotherMachineHasNoTpu) {
  FakeMetadataServer fake;
  fake.Set("instance/id", "1");
  fake.Set("instance/scheduling/preemptible", "FALSE");
  fake.Set("instance/attributes/instance-id", "somebody's own attribute");
  fake.Set("instance/attributes/kube-labels",
           "cloud.google.com/gke-nodepool=h100,cloud.google.com/gke-accelerator=nvidia-h100-80gb");
  const MetadataFacts told = AskMetadata(ServerAt(fake), absl::Seconds(60));
  EXPECT_TRUE(told.status.ok()) << told.status;
  EXPECT_THAT(told.facts, SizeIs(3));
  EXPECT_EQ(Text(told.facts, "accelerator_type"),
            "nvidia-h100-80gb from kube-labels cloud.google.com/gke-accelerator");
  EXPECT_EQ(Text(told.facts, "node_pool"), "h100 from kube-labels cloud.google.com/gke-nodepool");
}

TEST(HostFactsTest, ServerThatDoesNotAnswerIsAskedOnce) {
  FakeMetadataServer fake;
  fake.Behave(Manner::kSilent);
  const MetadataFacts told = AskMetadata(ServerAt(fake, absl::Milliseconds(50)), absl::Seconds(60));
  EXPECT_EQ(told.status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(fake.TakePaths(), SizeIs(1));
  EXPECT_THAT(told.facts, IsEmpty());
}

TEST(HostFactsTest, BudgetEndsARoundOfQuestions) {
  FakeMetadataServer fake;
  fake.SetTpuVm();
  const MetadataFacts told = AskMetadata(ServerAt(fake), -absl::Seconds(1));
  EXPECT_EQ(told.status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(fake.TakePaths(), IsEmpty());
}

TEST(HostFactsTest, ConfiguredLabelsComeFirstWhereThereIsNoRoom) {
  const HostFacts facts = {{"rack", {"7", kConfigured}},
                           {"zone", {"z", "instance/zone"}},
                           {"project", {"p", "project/project-id"}},
                           {"pod", {"q", "POD_NAME"}}};
  EXPECT_THAT(LabelsOf(facts, 32), ElementsAre(Pair("rack", "7"), Pair("zone", "z"),
                                               Pair("pod", "q"), Pair("project", "p")));
  EXPECT_THAT(LabelsOf(facts, 2), ElementsAre(Pair("rack", "7"), Pair("zone", "z")));
}

class IdentitySourceTest : public ::testing::Test {
 protected:
  std::unique_ptr<IdentitySource> Make(HostFacts local, bool with_metadata) {
    IdentitySourceOptions options;
    options.job = "hosts";
    options.host = "host-a";
    options.local = std::move(local);
    if (with_metadata) options.metadata = ServerAt(fake_);
    options.known = known_;
    options.steady_now = [this] { return now_; };
    return std::make_unique<IdentitySource>(std::move(options));
  }
  void PollNext(IdentitySource* source) {
    now_ += IdentitySource::kInterval;
    sink_.samples.clear();
    source->Poll(now_, &sink_);
  }

  FakeMetadataServer fake_;
  std::shared_ptr<KnownHost> known_ = std::make_shared<KnownHost>(HostFacts());
  testing::RecordingSink sink_;
  absl::Time now_ = absl::FromUnixSeconds(1'700'000'000);
};

TEST_F(IdentitySourceTest, RowHasTheLabelsAndTheConfiguredOnesWin) {
  fake_.SetTpuVm();
  const auto source = Make({{"zone", {"mine", kConfigured}}, {"task", {"x", kConfigured}}}, true);
  EXPECT_EQ(source->AskNow(), "8431,8432,8433,8434");
  EXPECT_EQ(Text(known_->Get(), "zone"), "mine from configuration");
  PollNext(source.get());
  ASSERT_THAT(sink_.samples, SizeIs(1));
  EXPECT_EQ(sink_.samples[0].metric, "host_info");
  EXPECT_EQ(sink_.samples[0].value(), 1);
  EXPECT_EQ(sink_.samples[0].job, "hosts");
  EXPECT_THAT(sink_.samples[0].label, HasSubstr("zone=mine"));
  EXPECT_THAT(sink_.samples[0].label, HasSubstr("machine_type=ct4p-hightpu-4t"));
  for (const v1::Layout::Series& series : sink_.layouts.back().series()) {
    EXPECT_LE(series.labels_size(), static_cast<int>(IdentitySource::kMaxLabels));
    for (const v1::Label& label : series.labels()) EXPECT_NE(label.name(), "task");
  }
}

TEST_F(IdentitySourceTest, NothingIsAskedOrRecordedWhereNothingIsKnown) {
  const auto source = Make({}, false);
  EXPECT_EQ(source->AskNow(), "");
  PollNext(source.get());
  EXPECT_THAT(sink_.samples, IsEmpty());
  EXPECT_TRUE(source->status().ok());
}

TEST_F(IdentitySourceTest, AsksAgainUntilItIsAnsweredAndThenRarely) {
  fake_.SetTpuVm();
  fake_.Behave(Manner::kOverloaded);
  const auto source = Make({{"pod", {"p", "POD_NAME"}}}, true);
  source->AskNow();
  EXPECT_EQ(source->status().code(), absl::StatusCode::kUnavailable);
  PollNext(source.get());
  EXPECT_THAT(sink_.samples, SizeIs(1)) << "what is known is told";
  fake_.Behave(Manner::kProper);
  PollNext(source.get());
  EXPECT_TRUE(source->status().ok());
  EXPECT_EQ(Text(known_->Get(), "zone"), "europe-west4-b from instance/zone");
  fake_.TakePaths();
  PollNext(source.get());
  EXPECT_THAT(fake_.TakePaths(), IsEmpty());
  now_ += IdentitySource::kAskAgain;
  fake_.Behave(Manner::kOverloaded);
  PollNext(source.get());
  EXPECT_THAT(fake_.TakePaths(), SizeIs(1));
  EXPECT_EQ(Text(known_->Get(), "zone"), "europe-west4-b from instance/zone") << "as told before";
}

}  // namespace
}  // namespace tacho::agent
