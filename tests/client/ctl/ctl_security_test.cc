// tachoctl's token and TLS flags, up to what the server is shown.
#include <sstream>

#include "client/ctl/commands/run.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/ctl/ctl_fake_query.h"
#include "tests/support/certificates.h"

namespace tacho::ctl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class CtlSecurityTest : public ::testing::Test {
 protected:
  int Run(std::vector<std::string> args) {
    err_.str("");
    env_.out = &out_;
    env_.err = &err_;
    if (env_.address == kDefaultAddress) env_.address = fake_.address;
    return ctl::Run(args, env_);
  }
  std::string Err() const { return err_.str(); }

  FakeQuery fake_;
  Environment env_;
  std::ostringstream out_;
  std::ostringstream err_;
  TestFiles files_;
};

TEST_F(CtlSecurityTest, EveryCallShowsTheToken) {
  const std::string token = files_.Write("token", "abc\n");
  fake_.job.mutable_job()->set_name("bert");
  Run({"jobs", "--token-file", token});
  Run({"status", "bert", "--token-file=" + token});
  EXPECT_THAT(fake_.shown,
              ElementsAre("Bearer abc", "Bearer abc", "Bearer abc", "Bearer abc", "Bearer abc"))
      << "ListJobs, Conditions; GetJob, ListEvents, Conditions";
}

TEST_F(CtlSecurityTest, TheEnvironmentIsOverruledByTheFlag) {
  env_.security.token_file = files_.Write("one", "one");
  Run({"jobs"});
  Run({"jobs", "--token-file", files_.Write("other", "other")});
  EXPECT_THAT(fake_.shown, ElementsAre("Bearer one", "Bearer one", "Bearer other", "Bearer other"))
      << "ListJobs, Conditions, twice";
}

TEST_F(CtlSecurityTest, WithoutATokenNothingIsShown) {
  Run({"jobs"});
  EXPECT_THAT(fake_.shown, ElementsAre("", "")) << "ListJobs, Conditions";
}

TEST_F(CtlSecurityTest, AFileThatIsNotRightIsAWrongCommandLine) {
  EXPECT_EQ(Run({"jobs", "--token-file", files_.PathOf("nowhere")}), kUsage);
  EXPECT_THAT(Err(), AllOf(HasSubstr("--token-file: cannot read"), HasSubstr("nowhere")));
  EXPECT_EQ(Run({"query", "bert", "loss", "--tls-ca", files_.Write("ca", "garbage")}), kUsage);
  EXPECT_THAT(Err(), AllOf(HasSubstr("--tls-ca:"), HasSubstr("no certificate in PEM")));
  EXPECT_EQ(Run({"jobs", "--tls-cert", files_.Write("c", "x")}), kUsage);
  EXPECT_THAT(Err(), HasSubstr("--tls-key: is missing"));
  EXPECT_TRUE(fake_.shown.empty());
}

TEST_F(CtlSecurityTest, ATokenIsNotSentToAnotherMachineInPlaintext) {
  const std::string token = files_.Write("token", "abc\n");
  env_.address = "192.0.2.1:7411";
  EXPECT_EQ(Run({"jobs", "--token-file", token}), kUsage);
  EXPECT_THAT(Err(), AllOf(HasSubstr("192.0.2.1"), HasSubstr("--tls"),
                           HasSubstr("--allow-plaintext-token"), Not(HasSubstr("abc"))));
}

TEST_F(CtlSecurityTest, RefusalsSayWhatToDo) {
  fake_.job_status = {grpc::StatusCode::UNAUTHENTICATED, "no token was sent"};
  EXPECT_EQ(Run({"status", "bert"}), kNothing);
  EXPECT_THAT(Err(), HasSubstr("rejected your identity: no token was sent"));
  fake_.job_status = {grpc::StatusCode::PERMISSION_DENIED, "\"eve\" lacks the role read"};
  EXPECT_EQ(Run({"status", "bert"}), kNothing);
  EXPECT_THAT(Err(), HasSubstr("\"eve\" lacks the role read"));
}

}  // namespace
}  // namespace tacho::ctl
