// Where credentials come from, at servers that answer as the documentation of AWS and Google says,
// and when they are renewed.
#include "storage/bucket/credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "proto/base/clock.h"
#include "storage/bucket/credential_chain.h"
#include "storage/bucket/credential_sources.h"
#include "storage/bucket/http_pool.h"
#include "tests/storage/bucket/bucket_under_test.h"
#include "tests/support/canned_http_server.h"
#include "tests/support/fake_metadata_server.h"
#include "tests/support/fake_object_store.h"

namespace tacho::storage {
namespace {

using ::testing::AllOf;
using testing::CannedHttpServer;
using testing::FakeMetadataServer;
using testing::FakeObjectStore;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Ok(const std::string& body) {
  return absl::StrCat("HTTP/1.1 200 OK\r\nContent-Length: ", body.size(), "\r\n\r\n", body);
}
std::string Status(int status, const std::string& body = "") {
  return absl::StrCat("HTTP/1.1 ", status, " X\r\nContent-Length: ", body.size(), "\r\n\r\n", body);
}
std::string Json(const std::string& key, absl::Duration lifetime) {
  return absl::StrCat(
      R"({"Code": "Success", "AccessKeyId": ")", key,
      R"(", "SecretAccessKey": "s/+=", "Token": "t", "Expiration": ")",
      absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::Now() + lifetime, absl::UTCTimeZone()), "\"}");
}

class CredentialChain : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "credentialsXXXXXX";
    folder_ = mkdtemp(name.data());
    Set("HOME", folder_);
    // Nothing is there unless a test says so; the real addresses would take their time to be
    // silent.
    Set("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://127.0.0.1:9");
    Set("GCE_METADATA_HOST", "127.0.0.1:9");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void Set(const std::string& name, const std::string& value) { variables_[name] = value; }
  std::string Write(const std::string& name, const std::string& text, mode_t mode = 0600) {
    const std::string path = absl::StrCat(folder_, "/", name);
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << text;
    chmod(path.c_str(), mode);
    return path;
  }
  CredentialWorld World() {
    return {.environment = [this](const char* name) -> const char* {
              const auto found = variables_.find(name);
              return found == variables_.end() ? nullptr : found->second.c_str();
            },
            .region = "eu-west-1",
            .http = &http_};
  }
  absl::StatusOr<Credentials> Find(const std::string& choice = "auto",
                                   BucketDialect dialect = BucketDialect::kS3) {
    const auto fetch = ChooseCredentials(choice, dialect, World());
    if (!fetch.ok()) return fetch.status();
    return (*fetch)();
  }
  std::string KeyOf(const absl::StatusOr<Credentials>& found) {
    return found.ok() ? found->key_id : found.status().ToString();
  }

  std::map<std::string, std::string> variables_;
  std::string folder_;
  HttpPool http_{""};
};

// --- The order
// ------------------------------------------------------------------------------------

TEST_F(CredentialChain, NothingIsFoundAndSaysWhereItLooked) {
  const auto found = Find();
  ASSERT_TRUE(absl::IsPermissionDenied(found.status())) << found.status();
  EXPECT_THAT(
      std::string(found.status().message()),
      AllOf(HasSubstr("AWS_ACCESS_KEY_ID"), HasSubstr(".aws/credentials"), HasSubstr("EC2")));
}

TEST_F(CredentialChain, EnvironmentIsFirst) {
  Write(".aws/credentials", "[default]\naws_access_key_id=F\naws_secret_access_key=f\n");
  Set("AWS_ACCESS_KEY_ID", "E");
  Set("AWS_SECRET_ACCESS_KEY", "e");
  Set("AWS_SESSION_TOKEN", "t");
  const auto found = Find();
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->key_id, "E");
  EXPECT_EQ(found->secret, "e");
  EXPECT_EQ(found->session_token, "t");
}

TEST_F(CredentialChain, HalfAPairIsNoReasonToGoOn) {
  Write(".aws/credentials", "[default]\naws_access_key_id=F\naws_secret_access_key=f\n");
  Set("AWS_ACCESS_KEY_ID", "E");
  EXPECT_TRUE(absl::IsPermissionDenied(Find().status()));
}

TEST_F(CredentialChain, NamedSourceIsTheOnlyOne) {
  Set("AWS_ACCESS_KEY_ID", "E");
  Set("AWS_SECRET_ACCESS_KEY", "e");
  for (const char* choice : {"web_identity", "container", "instance", "file:/nowhere"}) {
    EXPECT_TRUE(absl::IsPermissionDenied(Find(choice).status())) << choice;
  }
  EXPECT_EQ(KeyOf(Find("environment")), "E");
}

// --- Shared files
// -----------------------------------------------------------------------------------

TEST_F(CredentialChain, ReadsSharedFiles) {
  Write(".aws/credentials", "[default]\naws_access_key_id=F\naws_secret_access_key=f\n");
  Write(".aws/config", "[profile other]\naws_access_key_id=O\naws_secret_access_key=o\n");
  EXPECT_EQ(KeyOf(Find()), "F");
  Set("AWS_PROFILE", "other");
  EXPECT_EQ(KeyOf(Find()), "O");
}

TEST_F(CredentialChain, MissingProfileIsNoReasonToGoOn) {
  CannedHttpServer container;
  container.Answer(Json("C", absl::Hours(1)));
  Set("AWS_CONTAINER_CREDENTIALS_FULL_URI", container.url());
  Set("AWS_PROFILE", "absent");
  const auto found = Find();
  ASSERT_TRUE(absl::IsPermissionDenied(found.status())) << found.status();
  EXPECT_THAT(std::string(found.status().message()), HasSubstr("absent"));
}

TEST_F(CredentialChain, ProfilesThatTakeARoleAreRefused) {
  Write(".aws/config", "[default]\nrole_arn=arn:aws:iam::1:role/x\nsource_profile=y\n");
  const auto found = Find();
  ASSERT_TRUE(absl::IsPermissionDenied(found.status())) << found.status();
  EXPECT_THAT(std::string(found.status().message()), HasSubstr("role_arn"));
}

TEST_F(CredentialChain, FileThatEverybodyReadsIsRefused) {
  const std::string path =
      Write("keys", "[default]\naws_access_key_id=F\naws_secret_access_key=f\n", 0644);
  const auto found = Find("file:" + path);
  ASSERT_TRUE(absl::IsPermissionDenied(found.status())) << found.status();
  EXPECT_THAT(std::string(found.status().message()), HasSubstr("chmod"));
  chmod(path.c_str(), 0600);
  EXPECT_EQ(KeyOf(Find("file:" + path)), "F");
}

// --- Web identity
// -----------------------------------------------------------------------------------

class WebIdentity : public CredentialChain {
 protected:
  void SetUp() override {
    CredentialChain::SetUp();
    Set("AWS_ROLE_ARN", "arn:aws:iam::1:role/a+b");
    Set("AWS_WEB_IDENTITY_TOKEN_FILE", Write("token", "header.body.signature\n", 0644));
    Set("AWS_ENDPOINT_URL_STS", "http://" + sts_.authority());
    sts_.AnswerEach([this](const std::string& request) {
      request_ = request;
      return answer_;
    });
    answer_ = Ok(absl::StrCat(
        "<AssumeRoleWithWebIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">"
        "<AssumeRoleWithWebIdentityResult><Credentials><SessionToken>t</SessionToken>"
        "<SecretAccessKey>s</SecretAccessKey><Expiration>",
        absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::Now() + absl::Hours(1), absl::UTCTimeZone()),
        "</Expiration><AccessKeyId>W</AccessKeyId></Credentials>"
        "</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>"));
  }
  std::string request_;
  std::string answer_;
  CannedHttpServer sts_;
};

TEST_F(WebIdentity, ExchangesTheToken) {
  const auto found = Find();
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->key_id, "W");
  EXPECT_EQ(found->session_token, "t");
  EXPECT_GT(found->lifetime, absl::Minutes(58));
  EXPECT_LE(found->lifetime, absl::Hours(1));
  EXPECT_THAT(request_,
              AllOf(HasSubstr("POST / HTTP/1.1"), HasSubstr("Action=AssumeRoleWithWebIdentity"),
                    HasSubstr("RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fa%2Bb"),
                    HasSubstr("WebIdentityToken=header.body.signature")));
}

TEST_F(WebIdentity, RefusalIsNoReasonToGoOn) {
  answer_ = Status(403, "<ErrorResponse><Error><Code>AccessDenied</Code></Error></ErrorResponse>");
  Write(".aws/credentials", "[default]\naws_access_key_id=F\naws_secret_access_key=f\n");
  const auto found = Find();
  ASSERT_TRUE(absl::IsPermissionDenied(found.status())) << found.status();
  EXPECT_THAT(std::string(found.status().message()), HasSubstr("AccessDenied"));
}

TEST_F(WebIdentity, FaultOfTheServiceMayPass) {
  answer_ = Status(503);
  EXPECT_TRUE(absl::IsUnavailable(Find().status()));
  answer_ = Ok("<html/>");
  EXPECT_TRUE(absl::IsPermissionDenied(Find().status()));
}

TEST_F(WebIdentity, RoleWithoutTokenIsNoReasonToGoOn) {
  variables_.erase("AWS_WEB_IDENTITY_TOKEN_FILE");
  Write(".aws/credentials", "[default]\naws_access_key_id=F\naws_secret_access_key=f\n");
  EXPECT_TRUE(absl::IsPermissionDenied(Find().status()));
}

// --- Containers
// -------------------------------------------------------------------------------------

TEST_F(CredentialChain, AsksTheContainersEndpointWithItsToken) {
  CannedHttpServer server;
  server.Answer(Json("C", absl::Hours(6)));
  Set("AWS_CONTAINER_CREDENTIALS_FULL_URI", server.url());
  Set("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", Write("token", "let me in\n"));
  const auto found = Find();
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->key_id, "C");
  EXPECT_EQ(found->secret, "s/+=");
  EXPECT_THAT(server.last_request(), HasSubstr("Authorization: let me in\r\n"));
}

TEST_F(CredentialChain, SendsTheContainersTokenNowhereElse) {
  for (const char* url : {"http://example.org/x", "http://10.0.0.1/x", "ftp://127.0.0.1/", "x"}) {
    Set("AWS_CONTAINER_CREDENTIALS_FULL_URI", url);
    const auto found = Find();
    EXPECT_TRUE(absl::IsPermissionDenied(found.status())) << found.status();
  }
}

TEST_F(CredentialChain, WhatIsNoCredentialsIsRefused) {
  CannedHttpServer server;
  Set("AWS_CONTAINER_CREDENTIALS_FULL_URI", server.url());
  for (const char* body : {"", "{", "[]", "{}", R"({"AccessKeyId": 1, "SecretAccessKey": 2})",
                           R"({"AccessKeyId": "a\r\nX: y", "SecretAccessKey": "s"})",
                           R"({"AccessKeyId": "a", "SecretAccessKey": ""})"}) {
    server.Answer(body);
    EXPECT_TRUE(absl::IsPermissionDenied(Find().status())) << body;
  }
}

// --- Instances
// --------------------------------------------------------------------------------------

class Instance : public CredentialChain {
 protected:
  void SetUp() override {
    CredentialChain::SetUp();
    Set("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://" + server_.authority());
    server_.AnswerEach([this](const std::string& request) {
      if (absl::StartsWith(request, "PUT /latest/api/token ")) {
        return absl::StrContains(request, "X-aws-ec2-metadata-token-ttl-seconds: ") ? Ok("tok=en")
                                                                                    : Status(400);
      }
      if (!absl::StrContains(request, "X-aws-ec2-metadata-token: tok=en\r\n")) return Status(401);
      if (absl::StartsWith(request, "GET /latest/meta-data/iam/security-credentials/ ")) {
        return role_.empty() ? Status(404) : Ok(role_);
      }
      if (absl::StartsWith(request, "GET /latest/meta-data/iam/security-credentials/trainer ")) {
        return Ok(Json("I", absl::Hours(6)));
      }
      return Status(404);
    });
  }
  std::string role_ = "trainer";
  CannedHttpServer server_;
};

TEST_F(Instance, AsksTheInstanceWithAToken) {
  const auto found = Find();
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->key_id, "I");
  EXPECT_THAT(found->source, HasSubstr("trainer"));
}

TEST_F(Instance, WithoutARoleThereIsNothing) {
  role_ = "";
  EXPECT_TRUE(absl::IsPermissionDenied(Find().status()));
}

TEST_F(Instance, IsNotAskedIfSwitchedOff) {
  Set("AWS_EC2_METADATA_DISABLED", "true");
  EXPECT_TRUE(absl::IsPermissionDenied(Find().status()));
  EXPECT_EQ(server_.last_request(), "");
}

// --- Google
// -----------------------------------------------------------------------------------------

class Google : public CredentialChain {
 protected:
  static constexpr char kPath[] = "instance/service-accounts/default/token";
  void SetUp() override {
    CredentialChain::SetUp();
    Set("GCE_METADATA_HOST", metadata_.authority());
    metadata_.Set(kPath,
                  R"({"access_token": "ya29.x", "expires_in": 3599, "token_type": "Bearer"})");
  }
  absl::StatusOr<Credentials> FindGoogle(const std::string& choice = "auto") {
    return Find(choice, BucketDialect::kGcs);
  }
  FakeMetadataServer metadata_;
};

TEST_F(Google, AsksTheMetadataServer) {
  const auto found = FindGoogle();
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->bearer, "ya29.x");
  EXPECT_EQ(found->lifetime, absl::Seconds(3599));
}

TEST_F(Google, TakesHmacKeysThatAreGoogles) {
  Set("AWS_ACCESS_KEY_ID", "AKIAOTHER");
  Set("AWS_SECRET_ACCESS_KEY", "s");
  EXPECT_EQ(FindGoogle()->bearer, "ya29.x");
  Set("AWS_ACCESS_KEY_ID", "GOOG1EXYZ");
  EXPECT_EQ(FindGoogle()->key_id, "GOOG1EXYZ");
}

TEST_F(Google, TrustsNoOtherServer) {
  metadata_.Behave(FakeMetadataServer::Manner::kOther);
  EXPECT_TRUE(absl::IsPermissionDenied(FindGoogle().status()));
  metadata_.Behave(FakeMetadataServer::Manner::kConceals);
  EXPECT_TRUE(absl::IsPermissionDenied(FindGoogle().status()));
  metadata_.Behave(FakeMetadataServer::Manner::kOverloaded);
  EXPECT_TRUE(absl::IsUnavailable(FindGoogle().status()));
}

TEST_F(Google, KeyOfAServiceAccountIsNoReasonToTakeTheMachines) {
  Set("GOOGLE_APPLICATION_CREDENTIALS", "/some/key.json");
  const auto found = FindGoogle();
  ASSERT_TRUE(absl::IsPermissionDenied(found.status())) << found.status();
  EXPECT_THAT(std::string(found.status().message()), HasSubstr("GOOGLE_APPLICATION_CREDENTIALS"));
}

TEST_F(Google, TokenOpensABucket) {
  metadata_.Set(kPath, absl::StrCat(R"({"access_token": ")", FakeObjectStore::kBearer,
                                    R"(", "expires_in": 3599})"));
  FakeObjectStore store(FakeObjectStore::Manner::kGcs);
  BucketOptions options = OptionsFor(store, "gs://tests");
  options.credentials = "auto";
  options.environment = World().environment;
  const auto bucket = MustOpen(options);
  const auto tag = bucket->PutNew("a", "x");
  ASSERT_TRUE(tag.ok()) << tag.status();
  EXPECT_TRUE(absl::IsAlreadyExists(bucket->PutNew("a", "y").status()));
  EXPECT_TRUE(bucket->PutIf("a", *tag, "y").ok());
}

// --- Renewal
// ----------------------------------------------------------------------------------------

class Renewal : public ::testing::Test {
 protected:
  CredentialKeeper keeper_{[this] { return Fetch(); }, [this] { return now_; }};

  absl::StatusOr<Credentials> Fetch() {
    ++fetches_;
    if (fails_) return absl::UnavailableError("the source is away");
    return Credentials{.key_id = absl::StrCat("k", fetches_), .lifetime = lifetime_};
  }
  std::string Key() {
    const auto found = keeper_.Get();
    return found.ok() ? found->key_id : "none";
  }

  absl::Time now_ = MonotonicNow();
  absl::Duration lifetime_ = absl::Hours(1);
  bool fails_ = false;
  int fetches_ = 0;
};

TEST_F(Renewal, FetchesFiveMinutesBeforeExpiry) {
  EXPECT_EQ(Key(), "k1");
  now_ += absl::Minutes(54);
  EXPECT_EQ(Key(), "k1");
  now_ += absl::Minutes(2);
  EXPECT_EQ(Key(), "k2");
  EXPECT_EQ(Key(), "k2");
}

TEST_F(Renewal, WhatLivesBrieflyIsFetchedHalfWay) {
  lifetime_ = absl::Minutes(4);
  EXPECT_EQ(Key(), "k1");
  now_ += absl::Seconds(110);
  EXPECT_EQ(Key(), "k1");
  now_ += absl::Seconds(20);
  EXPECT_EQ(Key(), "k2");
}

TEST_F(Renewal, FailedRenewalKeepsTheOld) {
  EXPECT_EQ(Key(), "k1");
  fails_ = true;
  now_ += absl::Hours(2);
  EXPECT_EQ(Key(), "k1");
  EXPECT_EQ(Key(), "k1");
  EXPECT_EQ(fetches_, 2) << "it is not tried at each request";
  now_ += absl::Seconds(11);
  fails_ = false;
  EXPECT_EQ(Key(), "k3");
}

TEST_F(Renewal, FailureWithoutOldOnesIsTheCallers) {
  fails_ = true;
  EXPECT_TRUE(absl::IsUnavailable(keeper_.Get().status()));
  fails_ = false;
  EXPECT_EQ(Key(), "k2");
}

TEST_F(Renewal, WhatTheServiceCallsExpiredIsFetchedAgain) {
  const auto first = keeper_.Get();
  keeper_.Refuse(*first);
  EXPECT_EQ(Key(), "k2");
  keeper_.Refuse(*first);
  EXPECT_EQ(Key(), "k2") << "another thread has been faster";
}

TEST(ExpiredCredentials, AreRenewedWithinACall) {
  FakeObjectStore store(FakeObjectStore::Manner::kAws);
  int left = 1;
  store.OnRequest([&](const FakeObjectStore::Request&) {
    return left-- > 0 ? FakeObjectStore::Fault::kExpired : FakeObjectStore::Fault::kNone;
  });
  std::vector<std::string> retries;
  BucketOptions options = OptionsFor(store, "s3://tests");
  options.on_request = [&](const FinishedRequest& one) { retries.emplace_back(one.retry); };
  const auto bucket = MustOpen(options);
  EXPECT_TRUE(bucket->Put("a", "x").ok());
  EXPECT_THAT(retries, ::testing::ElementsAre("expired", ""));
  left = 10;
  EXPECT_TRUE(absl::IsPermissionDenied(bucket->Put("a", "x").status()));
}

// Eight threads that need the first ones ask once.
TEST(ManyThreads, FetchOnce) {
  std::atomic<int> fetches = 0;
  CredentialKeeper keeper([&]() -> absl::StatusOr<Credentials> {
    ++fetches;
    absl::SleepFor(absl::Milliseconds(50));
    return Credentials{.key_id = "k"};
  });
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] { EXPECT_TRUE(keeper.Get().ok()); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(fetches, 1);
}

}  // namespace
}  // namespace tacho::storage
