// Tokens, rights, rules: who is let in, and what each may do.
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/config/yaml_config.h"
#include "server/security/access_control.h"
#include "server/security/tokens.h"
#include "tests/support/certificates.h"

namespace tacho::server::security {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr char kWriter[] = "writer-token";
constexpr char kReader[] = "reader-token";

std::string Entry(const std::string& name, const std::string& token, const std::string& rest) {
  return absl::StrCat("  - {name: ", name, ", sha256: ", absl::BytesToHexString(Sha256(token)),
                      ", ", rest, "}\n");
}

std::string Tokens() {
  return absl::StrCat("tokens:\n",
                      Entry("agents", kWriter, "roles: [write], jobs: 'vision-.*', agent_id: a1"),
                      Entry("people", kReader, "roles: [read, admin], jobs: '.*'"));
}

class AccessControlTest : public testing::Test {
 protected:
  std::unique_ptr<AccessControl> Open(const std::string& text) {
    auth_.set_tokens_file(files_.Write("tokens.yaml", text));
    auto control = AccessControl::Create(auth_, Options());
    EXPECT_TRUE(control.ok()) << control.status();
    return control.ok() ? *std::move(control) : nullptr;
  }
  std::string ErrorOf(const std::string& text) {
    auth_.set_tokens_file(files_.Write("tokens.yaml", text));
    return std::string(AccessControl::Create(auth_, Options()).status().message());
  }
  AccessControlOptions Options() {
    AccessControlOptions options;
    options.now = [this] { return now_; };
    options.on_refusal = [this](const absl::Status& status, absl::string_view peer) {
      refusals_.push_back(absl::StrCat(peer, " ", status.message()));
    };
    return options;
  }
  static Credentials Token(const std::string& token) { return {token, std::nullopt, "peer-1"}; }
  Credentials Certificate(const std::vector<std::string>& names, const std::string& token = "") {
    return {token, PeerCertificate{names, now_ + absl::Hours(1)}, "peer-1"};
  }
  void Reload(AccessControl* control, const std::string& text) {
    config::v1::Collector config;
    config.mutable_auth()->set_tokens_file(files_.Write("tokens.yaml", text));
    auto apply = control->Prepare(config);
    ASSERT_TRUE(apply.ok()) << apply.status();
    (*apply)();
  }

  absl::Time now_ = absl::FromUnixSeconds(1'800'000'000);
  TestFiles files_;
  config::v1::Collector::Auth auth_;
  std::vector<std::string> refusals_;
};

TEST_F(AccessControlTest, WithoutATokensFileEverybodyMayDoEverything) {
  auto control = AccessControl::Create(auth_, Options());
  ASSERT_TRUE(control.ok());
  EXPECT_FALSE((*control)->enabled());
  for (const Role role : {Role::kWrite, Role::kRead, Role::kAdmin}) {
    EXPECT_TRUE((*control)->Admit(Token(""), role).ok());
  }
}

TEST_F(AccessControlTest, WithOneNobodyIsLetInWithoutSomethingToShow) {
  const auto control = Open(Tokens());
  const auto refused = control->Admit(Token(""), Role::kRead);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kUnauthenticated);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("--token-file"));
}

TEST_F(AccessControlTest, ATokenHasItsRolesAndNoOther) {
  const auto control = Open(Tokens());
  EXPECT_TRUE(control->Admit(Token(kWriter), Role::kWrite).ok());
  EXPECT_TRUE(control->Admit(Token(kReader), Role::kRead).ok());
  EXPECT_TRUE(control->Admit(Token(kReader), Role::kAdmin).ok());
  const auto refused = control->Admit(Token(kWriter), Role::kRead);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(refused.status().message()),
              AllOf(HasSubstr("\"agents\""), HasSubstr("read"), HasSubstr("write")));
}

TEST_F(AccessControlTest, GarbageIsUnauthenticatedAndNoRefusalRepeatsAToken) {
  const auto control = Open(Tokens());
  const std::string almost = std::string(kWriter).substr(1);
  for (const std::string& token : {std::string("x"), almost, kWriter + std::string(" "),
                                   absl::BytesToHexString(Sha256(kWriter)),
                                   std::string(1 << 20, 'a'), std::string("\0\xff", 2)}) {
    const auto refused = control->Admit(Token(token), Role::kWrite);
    EXPECT_EQ(refused.status().code(), absl::StatusCode::kUnauthenticated);
  }
  ASSERT_EQ(refusals_.size(), 6u);
  for (const std::string& line : refusals_) {
    EXPECT_THAT(line, AllOf(HasSubstr("peer-1"), Not(HasSubstr(almost))));
  }
}

TEST_F(AccessControlTest, JobsAreMatchedAsAWhole) {
  const auto control = Open(Tokens());
  const auto caller = control->Admit(Token(kWriter), Role::kWrite);
  ASSERT_TRUE(caller.ok());
  EXPECT_TRUE(caller->rights().MayTouch("vision-7"));
  EXPECT_FALSE(caller->rights().MayTouch("a-vision-7"));
  EXPECT_FALSE(caller->rights().MayTouch("vision-7\nx"));
  const absl::Status refused = caller->rights().CheckJob("speech", "layout.source.job");
  EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(
      std::string(refused.message()),
      AllOf(HasSubstr("layout.source.job"), HasSubstr("\"speech\""), HasSubstr("vision-.*")));
}

TEST_F(AccessControlTest, ATokenMayBeBoundToAnAgent) {
  const auto control = Open(Tokens());
  const auto caller = control->Admit(Token(kWriter), Role::kWrite);
  ASSERT_TRUE(caller.ok());
  EXPECT_TRUE(caller->rights().CheckAgentId("a1").ok());
  EXPECT_THAT(std::string(caller->rights().CheckAgentId("a2").message()),
              AllOf(HasSubstr("hello.agent_id"), HasSubstr("\"a2\""), HasSubstr("\"a1\"")));
}

TEST_F(AccessControlTest, AnExpiredTokenIsRefusedFromItsTimeOn) {
  const auto control = Open(absl::StrCat(
      "tokens:\n",
      Entry("soon", kWriter,
            absl::StrFormat("roles: [write], jobs: '.*', expires: '%s'",
                            absl::FormatTime(now_ + absl::Minutes(1), absl::UTCTimeZone())))));
  const auto caller = control->Admit(Token(kWriter), Role::kWrite);
  ASSERT_TRUE(caller.ok()) << caller.status();
  now_ += absl::Seconds(59);
  EXPECT_TRUE(control->Recheck(*caller).ok());
  now_ += absl::Seconds(1);
  EXPECT_EQ(control->Recheck(*caller).code(), absl::StatusCode::kUnauthenticated);
  EXPECT_THAT(std::string(control->Admit(Token(kWriter), Role::kWrite).status().message()),
              HasSubstr("expired"));
}

TEST_F(AccessControlTest, ARemovedTokenEndsWhatItOpened) {
  const auto control = Open(Tokens());
  const auto writer = control->Admit(Token(kWriter), Role::kWrite);
  const auto reader = control->Admit(Token(kReader), Role::kRead);
  Reload(control.get(),
         absl::StrCat("tokens:\n", Entry("people", kReader, "roles: [read, admin], jobs: '.*'")));
  EXPECT_EQ(control->Recheck(*writer).code(), absl::StatusCode::kUnauthenticated);
  EXPECT_TRUE(control->Recheck(*reader).ok());
}

TEST_F(AccessControlTest, OtherRightsMakeTheHolderConnectAgain) {
  const auto control = Open(Tokens());
  const auto reader = control->Admit(Token(kReader), Role::kRead);
  Reload(control.get(),
         absl::StrCat("tokens:\n", Entry("people", kReader, "roles: [read, admin], jobs: 'a'")));
  EXPECT_EQ(control->Recheck(*reader).code(), absl::StatusCode::kUnavailable);
}

TEST_F(AccessControlTest, WhoCameBeforeThereWasAuthenticationMustShowSomethingAfter) {
  auto control = AccessControl::Create(auth_, Options());
  ASSERT_TRUE(control.ok());
  const auto anyone = (*control)->Admit(Token(kWriter), Role::kWrite);
  ASSERT_TRUE(anyone.ok());
  Reload(control->get(), Tokens());
  EXPECT_EQ((*control)->Recheck(*anyone).code(), absl::StatusCode::kUnauthenticated);
}

TEST_F(AccessControlTest, ABrokenFileChangesNothing) {
  const auto control = Open(Tokens());
  config::v1::Collector config;
  config.mutable_auth()->set_tokens_file(files_.Write("tokens.yaml", "tokens: [{name: x}]"));
  EXPECT_EQ(control->Prepare(config).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(control->Admit(Token(kWriter), Role::kWrite).ok());
}

TEST_F(AccessControlTest, AnEntryMayBeGivenTheAgentIdsThatMatch) {
  const auto control = Open(absl::StrCat(
      "tokens:\n", Entry("agents", kWriter, "roles: [write], jobs: '.*', agents: 'h[0-9]+|x'"),
      Entry("people", kReader, "roles: [write], jobs: '.*'")));
  const auto caller = control->Admit(Token(kWriter), Role::kWrite);
  ASSERT_TRUE(caller.ok()) << caller.status();
  EXPECT_TRUE(caller->rights().IsGivenAgentIds());
  EXPECT_TRUE(caller->rights().CheckAgentId("h12").ok());
  EXPECT_THAT(std::string(caller->rights().CheckAgentId("h12x").message()),
              AllOf(HasSubstr("hello.agent_id"), HasSubstr("\"h12x\""), HasSubstr("h[0-9]+|x")));
  const auto other = control->Admit(Token(kReader), Role::kWrite);
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_FALSE(other->rights().IsGivenAgentIds());
  EXPECT_TRUE(other->rights().CheckAgentId("h12").ok());
}

// An agent_id stays with its token's name, so that the secret can be replaced.
TEST_F(AccessControlTest, ANewSecretIsTheSameOwnerAndEachCertificateOneOfItsOwn) {
  const std::string certificates =
      "certificates:\n  - {name: fleet, names: 'DNS:.*', roles: [write], jobs: '.*'}\n";
  const auto control = Open(Tokens() + certificates);
  const auto owner = [&](const Credentials& shown) {
    const auto caller = control->Admit(shown, Role::kWrite);
    EXPECT_TRUE(caller.ok()) << caller.status();
    return caller.ok() ? caller->rights().owner() : "";
  };
  EXPECT_EQ(owner(Token(kWriter)), "token:agents");
  EXPECT_EQ(owner(Certificate({"CN:x", "DNS:h1"})), "certificate:DNS:h1");
  EXPECT_EQ(owner(Certificate({"DNS:h2"})), "certificate:DNS:h2");
  Reload(control.get(), absl::StrCat("tokens:\n", Entry("agents", "another-secret",
                                                        "roles: [write], jobs: '.*'")));
  EXPECT_EQ(owner(Token("another-secret")), "token:agents");
  EXPECT_EQ(Caller::Anyone().rights().owner(), "");
}

// The store keeps owners in a short form; a person reads a sentence.
TEST(RightsTest, TheRefusalOfAnAgentIdSaysWhoOwnsIt) {
  const Rights rights({.name = "b"});
  const auto refusal = [&](const std::string& owner) {
    return std::string(rights.RefuseAgentId("h1", owner).message());
  };
  EXPECT_THAT(refusal("token:a \"1\""), HasSubstr("\"h1\": the token \"a \"1\"\" used it first"));
  EXPECT_THAT(refusal("certificate:DNS:h1"),
              HasSubstr("\"h1\": the certificate \"DNS:h1\" used it first"));
  EXPECT_THAT(refusal("other"), HasSubstr("\"h1\": \"other\" used it first"));
}

TEST_F(AccessControlTest, ACertificateHasTheRightsOfTheFirstRuleThatFits) {
  const auto control = Open(
      "certificates:\n"
      "  - {name: agents, names: 'DNS:(?P<agent_id>[a-z0-9]+)\\.agents', roles: [write], jobs: "
      "'.*'}\n"
      "  - {name: people, names: 'CN:.*', roles: [read], jobs: '.*'}\n");
  const auto agent = control->Admit(Certificate({"CN:whatever", "DNS:h7.agents"}), Role::kWrite);
  ASSERT_TRUE(agent.ok()) << agent.status();
  EXPECT_TRUE(agent->rights().CheckAgentId("h7").ok());
  EXPECT_FALSE(agent->rights().CheckAgentId("h8").ok());
  EXPECT_TRUE(control->Admit(Certificate({"CN:eve"}), Role::kRead).ok());
  // A name of one kind is not one of another.
  EXPECT_EQ(control->Admit(Certificate({"CN:h7.agents"}), Role::kWrite).status().code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(control->Admit(Certificate({"URI:DNS:h7.agents"}), Role::kWrite).status().code(),
            absl::StatusCode::kUnauthenticated);
}

TEST_F(AccessControlTest, ACertificateThatExpiresEndsWhatItOpened) {
  const auto control =
      Open("certificates: [{name: all, names: '.*', roles: [read], jobs: '.*'}]\n");
  const auto caller = control->Admit(Certificate({"CN:x"}), Role::kRead);
  ASSERT_TRUE(caller.ok());
  now_ += absl::Hours(1);
  EXPECT_EQ(control->Recheck(*caller).code(), absl::StatusCode::kUnauthenticated);
}

TEST_F(AccessControlTest, ACopiedTokenIsWorthNothingWithoutTheCertificateItIsBoundTo) {
  const auto control = Open(absl::StrCat(
      "tokens:\n",
      Entry("bound", kWriter, "roles: [write], jobs: '.*', certificate: 'CN:host-7'")));
  EXPECT_TRUE(control->Admit(Certificate({"CN:host-7"}, kWriter), Role::kWrite).ok());
  EXPECT_EQ(control->Admit(Token(kWriter), Role::kWrite).status().code(),
            absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(control->Admit(Certificate({"CN:host-8"}, kWriter), Role::kWrite).status().code(),
            absl::StatusCode::kUnauthenticated);
}

TEST_F(AccessControlTest, AWrongTokenIsNotMadeGoodByACertificate) {
  const auto control =
      Open("certificates: [{name: all, names: '.*', roles: [read], jobs: '.*'}]\n");
  EXPECT_EQ(control->Admit(Certificate({"CN:x"}, "garbage"), Role::kRead).status().code(),
            absl::StatusCode::kUnauthenticated);
}

TEST_F(AccessControlTest, MistakesInTheFileAreNamed) {
  const std::string hash = absl::BytesToHexString(Sha256("x"));
  const auto with = [&](const std::string& rest) {
    return ErrorOf(absl::StrCat("tokens:\n  - {name: x, ", rest, "}\n"));
  };
  const std::string good = absl::StrCat("sha256: ", hash);
  EXPECT_THAT(ErrorOf("tokens: []"), HasSubstr("lets nobody in"));
  EXPECT_THAT(with("sha256: abc, roles: [read], jobs: a"),
              AllOf(HasSubstr("tokens[0].sha256"), HasSubstr("64")));
  EXPECT_THAT(with("sha256: tacho_secret, roles: [read], jobs: a"),
              AllOf(HasSubstr("is it the token itself"), Not(HasSubstr("tacho_secret"))));
  EXPECT_THAT(with(good + ", jobs: a"), HasSubstr("tokens[0].roles"));
  EXPECT_THAT(with(good + ", roles: [reed], jobs: a"), HasSubstr("tokens.yaml:2: tokens[0].roles"));
  EXPECT_THAT(with(good + ", roles: [read], jobs: '('"), HasSubstr("tokens[0].jobs"));
  EXPECT_THAT(with(good + ", roles: [read]"), HasSubstr("tokens[0].jobs: is required"));
  EXPECT_THAT(with(good + ", roles: [read], jobs: a, expires: soon"),
              AllOf(HasSubstr("tokens[0].expires"), HasSubstr("2027-01-31")));
  EXPECT_THAT(with(good + ", roles: [read], jobs: a, job: b"), HasSubstr("job"));
  EXPECT_THAT(ErrorOf(absl::StrCat("tokens:\n", Entry("x", "a", "roles: [read], jobs: a"),
                                   Entry("x", "b", "roles: [read], jobs: a"))),
              HasSubstr("tokens[1].name 'x' is given twice"));
  EXPECT_THAT(ErrorOf(absl::StrCat("tokens:\n", Entry("x", "a", "roles: [read], jobs: a"),
                                   Entry("y", "a", "roles: [read], jobs: a"))),
              HasSubstr("tokens[1].sha256"));
}

TEST_F(AccessControlTest, AFileThatEverybodyMayWriteIsRefused) {
  auth_.set_tokens_file(files_.Write("tokens.yaml", Tokens(), 0666));
  const auto control = AccessControl::Create(auth_, Options());
  EXPECT_EQ(control.status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(control.status().message()),
              AllOf(HasSubstr("auth.tokens_file"), HasSubstr("chmod o-w")));
}

TEST(SecretTest, TokensAreLongRandomAndPlainText) {
  const auto one = NewToken();
  const auto other = NewToken();
  ASSERT_TRUE(one.ok() && other.ok());
  EXPECT_NE(*one, *other);
  EXPECT_EQ(one->size(), 6u + 43u);
  for (const char c : *one) EXPECT_TRUE(isalnum(c) || c == '_' || c == '-') << *one;
}

TEST(SecretTest, Sha256IsTheStandards) {
  EXPECT_EQ(absl::BytesToHexString(Sha256("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(SecretTest, WhatTokensAreLookedUpByDiffersFromProcessToProcess) {
  EXPECT_NE(BlindIndex().KeyOf(Sha256("abc")), BlindIndex().KeyOf(Sha256("abc")));
}

TEST(AuthorizationHeaderTest, BearerBasicAndTokenCarryAToken) {
  EXPECT_EQ(TokenOf("Bearer abc", false), "abc");
  EXPECT_EQ(TokenOf("bearer  abc ", false), "abc");
  EXPECT_EQ(TokenOf("Basic " + absl::Base64Escape("prometheus:a:b"), true), "a:b");
  EXPECT_EQ(TokenOf("Token abc", true), "abc");
}

TEST(AuthorizationHeaderTest, EverythingElseCarriesNone) {
  for (const char* header : {"", " ", "Bearer", "abc", "Digest abc", "Basic !!!", "Basic YWJj"}) {
    EXPECT_EQ(TokenOf(header, true), "") << header;
  }
  EXPECT_EQ(TokenOf("Basic " + absl::Base64Escape("a:b"), false), "");
  EXPECT_EQ(TokenOf("Token abc", false), "");
  EXPECT_EQ(TokenOf("Bearer " + std::string(4096, 'a'), true), "");
}

TEST(PeerCertificateTest, NamesKeepTheirKind) {
  const auto certificate = TestCertificate::Make(
      {.common_name = "host-7",
       .alternative_names = {"DNS:host-7.example", "URI:spiffe://example/agent", "IP:127.0.0.1"}});
  const auto described = DescribePemCertificate(certificate.pem());
  ASSERT_TRUE(described.ok());
  EXPECT_THAT(described->names,
              ElementsAre("CN:host-7", "DNS:host-7.example", "URI:spiffe://example/agent"));
}

TEST(PeerCertificateTest, ANameWithANulByteIsLeftOut) {
  const auto certificate = TestCertificate::Make({.common_name = std::string("admin\0.evil", 11)});
  const auto described = DescribePemCertificate(certificate.pem());
  ASSERT_TRUE(described.ok());
  EXPECT_TRUE(described->names.empty());
}

}  // namespace
}  // namespace tacho::server::security
