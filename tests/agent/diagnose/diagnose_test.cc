#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "agent/diagnose/child_process.h"
#include "agent/diagnose/command.h"
#include "agent/diagnose/context.h"
#include "agent/diagnose/finding.h"
#include "agent/diagnose/tcp_connect.h"
#include "proto/base/clock.h"
#include "proto/config/yaml_config.h"
#include "tests/agent/stream/fake_collector.h"
#include "tests/support/canned_http_server.h"
#include "tests/support/fake_metadata_server.h"
#include "tests/support/tfevents_writer.h"

namespace tacho::agent {
namespace {

namespace fs = std::filesystem;
using ::tacho::testing::CannedHttpServer;
using ::tacho::testing::FakeMetadataServer;
using ::tacho::testing::WriteFile;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Longer than a name may be, so that no resolver is asked.
const std::string kNoName(300, 'a');

Finding Of(Severity severity, std::string message = "m") {
  return {.check = "c", .subject = "s", .severity = severity, .message = std::move(message)};
}

TEST(FindingTest, ExitCodeIsThatOfTheWorst) {
  EXPECT_EQ(ExitCodeOf({}), 0);
  EXPECT_EQ(ExitCodeOf({Of(Severity::kOk), Of(Severity::kInfo)}), 0);
  EXPECT_EQ(ExitCodeOf({Of(Severity::kWarning), Of(Severity::kOk)}), 3);
  EXPECT_EQ(ExitCodeOf({Of(Severity::kFailed), Of(Severity::kWarning)}), 4);
}

TEST(FindingTest, TableHasRemediesAndASum) {
  Finding failed = Of(Severity::kFailed, "broken");
  failed.remedy = "repair it";
  const std::string table = FindingsAsTable({Of(Severity::kOk), failed});
  EXPECT_THAT(table, HasSubstr("failed   c  s  broken\n"));
  EXPECT_THAT(table, HasSubstr("-> repair it\n"));
  EXPECT_THAT(table, HasSubstr("1 failed, 0 warnings, 0 infos, 1 ok\n"));
}

TEST(FindingTest, JsonEscapesWhatOthersSaid) {
  Finding finding = Of(Severity::kWarning, "a \"b\"\n\\ \xff");
  finding.figures = {{"seconds", "1"}};
  EXPECT_EQ(
      FindingsAsJson({finding}),
      "{\"worst\": \"warning\", \"findings\": [\n{\"check\": \"c\", \"subject\": \"s\", "
      "\"severity\": \"warning\", \"message\": \"a \\\"b\\\"\\n\\\\ \xEF\xBF\xBD\", \"remedy\": "
      "\"\", \"figures\": {\"seconds\": \"1\"}}\n]}\n");
}

TEST(RunnerTest, CheckThatHangsIsAFindingAndTheOthersAreThere) {
  // Not of this frame: the thread that is left behind outlives it.
  auto may_end = std::make_shared<absl::Notification>();
  auto has_ended = std::make_shared<absl::Notification>();
  const CheckResults results = RunChecks(
      {{.name = "hangs",
        .deadline = absl::Milliseconds(20),
        .run =
            [may_end, has_ended] {
              may_end->WaitForNotification();
              has_ended->Notify();
              return std::vector<Finding>();
            },
        .remedy = "unplug it"},
       {.name = "well", .run = [] { return std::vector<Finding>{{.message = "fine"}}; }}});
  may_end->Notify();
  has_ended->WaitForNotification();
  EXPECT_TRUE(results.left_behind);
  ASSERT_EQ(results.findings.size(), 2);
  EXPECT_EQ(results.findings[0].severity, Severity::kFailed);
  EXPECT_EQ(results.findings[0].message, "did not end within 20ms");
  EXPECT_EQ(results.findings[0].remedy, "unplug it");
  EXPECT_EQ(results.findings[1].check, "well");
}

TEST(ChildProcessTest, OutputAndExitStatusComeBack) {
  const auto output = RunChild({"sh", "-c", "cat; echo err >&2; exit 3"}, "in", absl::Seconds(60));
  ASSERT_TRUE(output.ok()) << output.status();
  EXPECT_EQ(output->exit_status, 3);
  EXPECT_EQ(output->text, "inerr\n");
}

TEST(ChildProcessTest, MissingProgramIsNotFound) {
  EXPECT_EQ(RunChild({"/no/such/program"}, "", absl::Seconds(60)).status().code(),
            absl::StatusCode::kNotFound);
}

TEST(ChildProcessTest, ChildThatHangsIsKilledWithWhatItStarted) {
  const auto output = RunChild({"sh", "-c", "echo started; sleep 1000 & echo $!; wait"}, "",
                               absl::Milliseconds(300));
  EXPECT_EQ(output.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(output.status().message()), HasSubstr("started"));
}

TEST(ChildProcessTest, EndlessOutputIsCut) {
  const auto output = RunChild({"sh", "-c", "head -c 1000000 /dev/zero"}, "", absl::Seconds(60));
  ASSERT_TRUE(output.ok()) << output.status();
  EXPECT_EQ(output->text.size(), kMaxChildOutput);
}

TEST(TcpConnectTest, NamesAndConnections) {
  CannedHttpServer server;
  const std::string authority = server.authority();
  const std::string port = authority.substr(authority.rfind(':') + 1);
  EXPECT_TRUE(TcpConnect("127.0.0.1", port, absl::Seconds(30)).ok());
  EXPECT_THAT(*ResolveName("127.0.0.1"), ElementsAre("127.0.0.1"));
  EXPECT_FALSE(ResolveName(kNoName).ok());
}

class DiagnoseTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ =
        (fs::path(::testing::TempDir()) /
         absl::StrCat("diagnose_", ::testing::UnitTest::GetInstance()->current_test_info()->name(),
                      "_", ::getpid()))
            .string();
    fs::remove_all(root_);
    WriteFile(root_ + "/proc/stat", "cpu  1 1 1 1\ncpu0 1 1 1 1\n");
    WriteFile(root_ + "/proc/self/mounts", "");
    WriteFile(root_ + "/sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n");
    ASSERT_TRUE(config::ParseYaml("", "", &context_.config).ok());
    auto* const sources = context_.config.mutable_sources();
    sources->mutable_host()->set_proc(root_ + "/proc");
    sources->mutable_host()->set_sys(root_ + "/sys");
    sources->mutable_host()->set_cgroup(root_ + "/cgroup");
    sources->mutable_rings()->set_directory(root_ + "/rings");
    sources->mutable_gpu()->set_enabled(false);
    sources->mutable_tpu()->set_enabled(false);
    context_.config.mutable_spool()->set_path(root_ + "/spool");
    context_.config.mutable_spool()->set_max_bytes(1);
    context_.config.mutable_identity()->set_host("host-a");
    context_.config.mutable_identity()->set_agent_id("a");
    context_.dev = root_ + "/dev";
    context_.compute = DiagnoseContext::Compute::kNever;
  }
  void TearDown() override { fs::remove_all(root_); }

  static const Finding* Find(const std::vector<Finding>& findings, absl::string_view check,
                             absl::string_view subject = "") {
    for (const Finding& finding : findings) {
      if (finding.check == check && (subject.empty() || finding.subject == subject)) {
        return &finding;
      }
    }
    return nullptr;
  }

  std::string root_;
  DiagnoseContext context_;
};

TEST_F(DiagnoseTest, EachFactSaysWhereItCameFrom) {
  FakeMetadataServer fake;
  fake.SetTpuVm();
  const std::string authority = fake.authority();
  context_.environment = [&authority](const char* name) -> const char* {
    if (absl::string_view(name) == "GCE_METADATA_HOST") return authority.c_str();
    return absl::string_view(name) == "POD_NAME" ? "bert-0-3" : nullptr;
  };
  std::vector<Finding> findings = RunChecks(IdentityChecks(context_)).findings;
  ASSERT_NE(Find(findings, "identity", "zone"), nullptr);
  EXPECT_EQ(Find(findings, "identity", "zone")->message, "europe-west4-b, from instance/zone");
  ASSERT_NE(Find(findings, "identity", "pod"), nullptr);
  EXPECT_EQ(Find(findings, "identity", "pod")->message, "bert-0-3, from POD_NAME");
  ASSERT_NE(Find(findings, "identity", "metadata server"), nullptr);
  EXPECT_EQ(Find(findings, "identity", "metadata server")->message,
            absl::StrCat("answers at ", authority));
  fake.Behave(FakeMetadataServer::Manner::kOther);
  findings = RunChecks(IdentityChecks(context_)).findings;
  ASSERT_NE(Find(findings, "identity", "metadata server"), nullptr);
  EXPECT_EQ(Find(findings, "identity", "metadata server")->severity, Severity::kWarning);
  EXPECT_THAT(Find(findings, "identity", "metadata server")->remedy, HasSubstr("hostNetwork"));
}

TEST_F(DiagnoseTest, HostSaysWhoItIsAndWhatItsDiskCanDo) {
  std::vector<Finding> findings = RunChecks(IdentityChecks(context_)).findings;
  ASSERT_NE(Find(findings, "identity"), nullptr);
  EXPECT_EQ(Find(findings, "identity")->message,
            "agent id a (identity.agent_id), host host-a (identity.host)");
  ASSERT_NE(Find(findings, "identity", "metadata server"), nullptr);
  EXPECT_EQ(Find(findings, "identity", "metadata server")->severity, Severity::kInfo);
  findings = RunChecks(HostChecks(context_)).findings;
  const Finding* const spool = Find(findings, "spool");
  ASSERT_NE(spool, nullptr);
  EXPECT_EQ(spool->severity, Severity::kOk) << spool->message;
  EXPECT_THAT(spool->message, HasSubstr(root_));
  EXPECT_FALSE(fs::exists(root_ + "/spool")) << "nothing is made";
  ASSERT_NE(Find(findings, "huge pages"), nullptr);
  EXPECT_EQ(Find(findings, "huge pages")->severity, Severity::kInfo);
  ASSERT_NE(Find(findings, "clock"), nullptr);
  ASSERT_NE(Find(findings, "permissions", root_ + "/rings"), nullptr);
}

TEST_F(DiagnoseTest, SpoolWithoutRoomOrRightsHasARemedy) {
  context_.config.mutable_spool()->set_max_bytes(uint64_t{1} << 60);
  const auto small = RunChecks(HostChecks(context_)).findings;
  EXPECT_EQ(Find(small, "spool")->severity, Severity::kWarning);
  EXPECT_THAT(Find(small, "spool")->remedy, HasSubstr("spool.max_bytes"));
  context_.config.mutable_spool()->set_path("/proc/self/spool");
  const auto closed = RunChecks(HostChecks(context_)).findings;
  EXPECT_EQ(Find(closed, "spool")->severity, Severity::kFailed);
}

TEST_F(DiagnoseTest, ChipsAreCountedOnPciAndAsFiles) {
  const std::string pci = root_ + "/sys/bus/pci/devices/";
  WriteFile(pci + "0000:00:04.0/vendor", "0x1ae0\n");
  WriteFile(pci + "0000:00:04.0/device", "0x0062\n");
  fs::create_directories(pci + "0000:00:04.0/accel/accel0");
  WriteFile(pci + "0000:00:05.0/vendor", "0x10de\n");
  WriteFile(pci + "0000:00:05.0/class", "0x030200\n");
  WriteFile(pci + "0000:00:06.0/vendor", "0x1ae0\n");
  WriteFile(pci + "0000:00:06.0/class", "0x020000\n");  // Google's network card.
  const auto without = RunChecks(ChipChecks(context_)).findings;
  EXPECT_EQ(Find(without, "chips")->severity, Severity::kFailed) << "no driver";
  WriteFile(root_ + "/dev/accel0", "");
  WriteFile(root_ + "/dev/nvidia0", "");
  WriteFile(root_ + "/dev/nvidiactl", "");
  WriteFile(root_ + "/dev/vfio/7", "");
  WriteFile(root_ + "/sys/module/nvidia/version", "590.48.01\n");
  const auto findings = RunChecks(ChipChecks(context_)).findings;
  EXPECT_EQ(Find(findings, "chips")->severity, Severity::kOk);
  EXPECT_EQ(Find(findings, "chips")->message, "1 TPU v5, 1 NVIDIA on PCI, 3 device files");
  EXPECT_EQ(Find(findings, "chips", "holders")->message, "no process has a TPU open");
  EXPECT_EQ(Find(findings, "drivers", "nvidia")->message, "kernel module 590.48.01");
}

TEST_F(DiagnoseTest, MachineWithoutChipsIsNoFault) {
  fs::create_directories(root_ + "/sys/bus/pci/devices");
  const auto findings = RunChecks(ChipChecks(context_)).findings;
  EXPECT_EQ(Find(findings, "chips")->severity, Severity::kInfo);
  EXPECT_EQ(Find(findings, "chips")->message, "this machine has neither TPUs nor NVIDIA GPUs");
}

TEST_F(DiagnoseTest, SourcesSayWhatTheyHaveAndWhatIsMissing) {
  CannedHttpServer server;
  server.Answer("a 1\nb 2\n");
  auto* const endpoints = context_.config.mutable_sources()->mutable_endpoints();
  for (const char* name : {"good", "bad"}) {
    auto* const target = endpoints->add_targets();
    target->set_name(name);
    target->set_url(name == std::string("good") ? server.url() : "http://127.0.0.1:1/metrics");
    target->set_interval(1'000'000'000);
    target->set_timeout(30'000'000'000);
    target->set_max_body_bytes(1000);
    target->set_max_series(10);
    target->mutable_series()->set_job("hosts");
  }
  context_.timeout = absl::Seconds(60);
  const auto findings = RunChecks(SourceChecks(context_)).findings;
  const Finding* const good = Find(findings, "metrics", "endpoint:good");
  ASSERT_NE(good, nullptr);
  EXPECT_EQ(good->severity, Severity::kOk);
  EXPECT_EQ(good->message, "2 series of 2 metrics");
  const Finding* const bad = Find(findings, "metrics", "endpoint:bad");
  ASSERT_NE(bad, nullptr);
  EXPECT_EQ(bad->severity, Severity::kWarning);
  EXPECT_THAT(bad->message, HasSubstr("Connection refused"));
  const Finding* const host = Find(findings, "metrics", "host");
  ASSERT_NE(host, nullptr);
  EXPECT_THAT(host->message, HasSubstr("/proc/meminfo: No such file")) << "why it is missing";
}

TEST_F(DiagnoseTest, RingsAreNotTouched) {
  WriteFile(root_ + "/rings/x.ring", "no ring");
  RunChecks(SourceChecks(context_));
  EXPECT_TRUE(fs::exists(root_ + "/rings/x.ring"));
}

TEST_F(DiagnoseTest, CollectorThatIsAwayIsToldWithoutFurtherTries) {
  context_.config.mutable_collector()->clear_addresses();
  context_.config.mutable_collector()->add_addresses("127.0.0.1:1");
  context_.config.mutable_collector()->add_addresses(absl::StrCat(kNoName, ":7411"));
  context_.timeout = absl::Seconds(60);
  const auto findings = RunChecks(CollectorChecks(context_)).findings;
  ASSERT_EQ(findings.size(), 3);
  EXPECT_EQ(findings[0].severity, Severity::kOk);
  EXPECT_EQ(findings[1].check, "connection");
  EXPECT_EQ(findings[1].severity, Severity::kFailed);
  EXPECT_THAT(findings[1].message, HasSubstr("Connection refused"));
  EXPECT_EQ(findings[2].check, "dns");
  EXPECT_EQ(findings[2].severity, Severity::kFailed);
}

TEST_F(DiagnoseTest, EachMemberIsAskedForItsShard) {
  FakeCollector members[2];
  for (FakeCollector& member : members) {
    context_.config.mutable_collector()->add_members(member.address());
    // Both are shard 0 of 2: the second one has another list.
    member.greet = [](const v1::Hello& hello) {
      if (hello.shards() == 2 && hello.shard() == 0) return grpc::Status::OK;
      return grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "this is shard 0 of 2");
    };
  }
  const auto findings = RunChecks(CollectorChecks(context_)).findings;
  std::vector<Finding> calls;
  for (const Finding& finding : findings) {
    if (finding.check == "collector") calls.push_back(finding);
  }
  ASSERT_EQ(calls.size(), 2);
  EXPECT_EQ(calls[0].severity, Severity::kOk) << calls[0].message;
  EXPECT_EQ(calls[1].severity, Severity::kFailed);
  EXPECT_THAT(calls[1].message, HasSubstr("this is shard 0 of 2"));
  EXPECT_THAT(calls[1].remedy, HasSubstr("cluster.members"));
}

TEST_F(DiagnoseTest, TheOwnerOfAShardMayBeASpare) {
  FakeCollector members[2];
  FakeCollector spare;
  for (FakeCollector& member : members) {
    context_.config.mutable_collector()->add_members(member.address());
  }
  context_.config.mutable_collector()->add_spares(spare.address());
  members[0].greet = [](const v1::Hello& hello) {
    if (hello.shard() == 0) return grpc::Status::OK;
    return grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "this is shard 0 of 2");
  };
  members[1].Stop();
  spare.greet = [](const v1::Hello& hello) {
    if (hello.shard() == 1) return grpc::Status::OK;
    return grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "this is shard 1 of 2");
  };
  EXPECT_EQ(ExitCodeOf(RunChecks(CollectorChecks(context_)).findings), 0);
  spare.Stop();
  // What is said is about the member.
  const auto findings = RunChecks(CollectorChecks(context_)).findings;
  EXPECT_NE(ExitCodeOf(findings), 0);
  for (const Finding& finding : findings) {
    if (finding.severity == Severity::kFailed) {
      EXPECT_EQ(finding.subject, members[1].address());
    }
  }
}

// A listener that accepts and never says anything, as a firewall that swallows what comes back.
TEST_F(DiagnoseTest, CollectorThatSaysNothingEndsInTime) {
  CannedHttpServer server;
  server.AnswerNothing();
  context_.config.mutable_collector()->clear_addresses();
  context_.config.mutable_collector()->add_addresses(server.authority());
  context_.timeout = absl::Milliseconds(200);
  const absl::Time began = MonotonicNow();
  const auto findings = RunChecks(CollectorChecks(context_)).findings;
  EXPECT_LT(MonotonicNow() - began, absl::Seconds(30));
  EXPECT_EQ(ExitCodeOf(findings), 4);
}

class ComputeTest : public DiagnoseTest {
 protected:
  // A program in the place of Python.
  std::vector<Finding> With(const std::string& script) {
    const std::string path = root_ + "/python";
    WriteFile(path, "#!/bin/sh\n" + script);
    ::chmod(path.c_str(), 0755);
    context_.python = path;
    context_.compute = DiagnoseContext::Compute::kAuto;
    return RunChecks(ComputeChecks(context_)).findings;
  }
};

TEST_F(ComputeTest, EachDeviceIsAFinding) {
  const auto findings =
      With("echo noise; echo tacho jax 0.7 TPU_0 ok 1.5; echo tacho jax 0.7 TPU_1 wrong 1.5");
  ASSERT_EQ(findings.size(), 2);
  EXPECT_EQ(findings[0].severity, Severity::kOk);
  EXPECT_EQ(findings[0].subject, "TPU_0");
  EXPECT_EQ(findings[1].severity, Severity::kFailed);
  EXPECT_THAT(findings[1].message, HasSubstr("WRONG"));
}

TEST_F(ComputeTest, ChildThatHangsIsAFinding) {
  context_.compute_timeout = absl::Milliseconds(200);
  const auto findings = With("sleep 1000");
  ASSERT_EQ(findings.size(), 1);
  EXPECT_EQ(findings[0].severity, Severity::kFailed);
  EXPECT_THAT(findings[0].message, HasSubstr("did not end within 200ms"));
}

TEST_F(ComputeTest, MissingFrameworkAndMissingPythonAreNoFaults) {
  EXPECT_EQ(With("exit 0")[0].severity, Severity::kInfo);
  EXPECT_EQ(With("echo broken; exit 1")[0].severity, Severity::kFailed);
  EXPECT_EQ(With("echo tacho-error jax no chips")[0].severity, Severity::kFailed);
  context_.python = root_ + "/none";
  EXPECT_EQ(RunChecks(ComputeChecks(context_)).findings[0].severity, Severity::kInfo);
}

TEST(DiagnoseFlagsTest, AreReadAndChecked) {
  const auto flags = ParseDiagnoseFlags(
      {"--config", "c", "-o", "json", "--compute=never", "--timeout", "3s", "--python", "p"});
  ASSERT_TRUE(flags.ok()) << flags.status();
  EXPECT_EQ(flags->config, "c");
  EXPECT_TRUE(flags->json);
  EXPECT_EQ(flags->context.compute, DiagnoseContext::Compute::kNever);
  EXPECT_EQ(flags->context.timeout, absl::Seconds(3));
  for (const std::vector<std::string>& wrong :
       std::vector<std::vector<std::string>>{{"-o", "xml"},
                                             {"--timeout", "0s"},
                                             {"--timeout", "11m"},
                                             {"--compute", "maybe"},
                                             {"--config"},
                                             {"--nonsense", "x"}}) {
    EXPECT_FALSE(ParseDiagnoseFlags(wrong).ok()) << wrong[0];
  }
}

TEST(DiagnoseFlagsTest, WrongFlagsAndFilesAreTwo) {
  std::ostringstream out;
  std::ostringstream errors;
  EXPECT_EQ(RunDiagnose({"--nonsense", "x"}, "1", &out, &errors), 2);
  EXPECT_THAT(errors.str(), HasSubstr("--nonsense"));
  EXPECT_EQ(RunDiagnose({"--colector", "x"}, "1", &out, &errors), 2);
  EXPECT_THAT(errors.str(), HasSubstr("did you mean '--collector'?"));
  EXPECT_EQ(RunDiagnose({"extra"}, "1", &out, &errors), 2);
  EXPECT_EQ(RunDiagnose({"--config", "/no/such/file"}, "1", &out, &errors), 2);
  EXPECT_EQ(RunDiagnose({"--help"}, "1", &out, &errors), 0);
  EXPECT_THAT(out.str(), HasSubstr("Usage: tacho-agent diagnose"));
}

}  // namespace
}  // namespace tacho::agent
