// 'tachoctl bucket probe', at services in memory.
#include <sstream>

#include "client/ctl/commands/run.h"
#include "client/ctl/line/environment.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/certificates.h"
#include "tests/support/fake_object_store.h"

namespace tacho::ctl {
namespace {

using tacho::testing::FakeObjectStore;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Manner = FakeObjectStore::Manner;

class CtlBucketTest : public ::testing::Test {
 protected:
  int Probe(const FakeObjectStore& store, std::vector<std::string> more = {},
            const std::string& url = "s3://tests") {
    std::vector<std::string> args = {"bucket",        "probe",        url,
                                     "--path-style",  "--endpoint",   store.endpoint(),
                                     "--credentials", "file:" + keys_};
    args.insert(args.end(), more.begin(), more.end());
    return Run(args);
  }
  int Run(const std::vector<std::string>& args) {
    out_.str("");
    err_.str("");
    env_.out = &out_;
    env_.err = &err_;
    return ctl::Run(args, env_);
  }

  Environment env_;
  std::ostringstream out_;
  std::ostringstream err_;
  TestFiles files_;
  const std::string keys_ = files_.Write(
      "keys", absl::StrCat("[default]\naws_access_key_id = ", FakeObjectStore::kKeyId,
                           "\naws_secret_access_key = ", FakeObjectStore::kSecret, "\n"));
};

TEST_F(CtlBucketTest, GoodBucketIsASuccess) {
  const FakeObjectStore store(Manner::kAws);
  EXPECT_EQ(Probe(store), kOk) << err_.str();
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("create_race"), HasSubstr("one of 8 succeeded"),
                                HasSubstr("collectors may share it")));
}

TEST_F(CtlBucketTest, BucketWithVersionsIsNamedAndFailsTheCheck) {
  const FakeObjectStore store(Manner::kCeph16Versioned);
  EXPECT_EQ(Probe(store), kThreshold);
  EXPECT_THAT(out_.str(), HasSubstr("use a bucket without versions"));
}

TEST_F(CtlBucketTest, JsonHasTheFindings) {
  const FakeObjectStore store(Manner::kIgnorant);
  EXPECT_EQ(Probe(store, {"-o", "json"}), kThreshold);
  EXPECT_THAT(out_.str(),
              AllOf(HasSubstr("\"url\": \"s3://tests\""), HasSubstr("\"fit_to_share\": false"),
                    HasSubstr("\"fit_for_history\": true"), HasSubstr("\"name\": \"create_once\""),
                    HasSubstr("\"result\": \"fail\"")));
  EXPECT_EQ(Probe(store, {"-o", "csv"}), kThreshold);
  EXPECT_THAT(out_.str(), StartsWith("name,result,detail\r\nread_after_write,pass,"));
}

TEST_F(CtlBucketTest, SaysWhyItCannotProbe) {
  const FakeObjectStore store(Manner::kAws);
  EXPECT_EQ(Probe(store, {}, "s3://another"), kNothing);
  EXPECT_THAT(err_.str(), HasSubstr("create the bucket"));
  EXPECT_EQ(Run({"bucket", "probe", "s3://tests", "--endpoint", "http://127.0.0.1:9",
                 "--credentials", "file:" + keys_, "--path-style", "--timeout", "1s"}),
            kUnreachable);
  EXPECT_EQ(Run({"bucket", "probe", "tests"}), kUsage);
  EXPECT_THAT(err_.str(), HasSubstr("expected s3://BUCKET/PREFIX"));
  EXPECT_EQ(Run({"bucket", "prob", "s3://tests"}), kUsage);
  EXPECT_EQ(Run({"bucket", "probe", "s3://tests", "--credentials", "file:/nowhere"}), kNothing);
}

}  // namespace
}  // namespace tacho::ctl
