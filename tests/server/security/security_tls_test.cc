// Certificates from files: what is refused, what new connections see, what clients are let in.
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "server/security/grpc_caller.h"
#include "server/security/listen_policy.h"
#include "server/security/security.h"
#include "server/security/tls_source.h"
#include "tacho/v1/query.grpc.pb.h"
#include "tests/support/certificates.h"
#include "tests/support/patient_context.h"

namespace tacho::server::security {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

// Answers with the names of the certificate that the caller shows.
class NamesService final : public v1::Query::CallbackService {
 public:
  grpc::ServerUnaryReactor* ListJobs(grpc::CallbackServerContext* context,
                                     const v1::ListJobsRequest*,
                                     v1::ListJobsResponse* response) override {
    const Credentials shown = CredentialsOf(*context);
    if (shown.certificate.has_value()) {
      for (const std::string& name : shown.certificate->names) response->add_jobs()->set_name(name);
    }
    response->set_next_page_token(shown.token);
    auto* const reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
};

class TlsTest : public testing::Test {
 protected:
  TlsTest() { UseServer(server_); }

  void UseServer(const TestCertificate& certificate) {
    tls()->set_certificate(files_.Write("server.crt", certificate.pem(), 0644));
    tls()->set_key(files_.Write("server.key", certificate.key_pem()));
  }
  void AskClients(const std::string& how) {
    tls()->set_client_ca(files_.Write("clients.crt", authority_.pem(), 0644));
    tls()->set_client_certificates(how);
  }
  config::v1::Collector::Tls* tls() { return config_.mutable_listen()->mutable_tls(); }
  std::string LoadError() {
    return std::string(LoadTlsMaterial(*tls(), absl::Now()).status().message());
  }
  void Serve() {
    auto source = TlsSource::Create(config_);
    ASSERT_TRUE(source.ok()) << source.status();
    source_ = *std::move(source);
    credentials_ = GrpcTlsCredentials(source_.get());
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", credentials_, &port_);
    builder.RegisterService(&service_);
    grpc_ = builder.BuildAndStart();
    ASSERT_NE(grpc_, nullptr);
    ASSERT_NE(port_, 0);
  }
  std::shared_ptr<grpc::Channel> Connect(const TestCertificate& trusted,
                                         const TestCertificate* own = nullptr) const {
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = trusted.pem();
    if (own != nullptr) {
      options.pem_cert_chain = own->pem();
      options.pem_private_key = own->key_pem();
    }
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    // By its address: c-ares 1.18 loses memory each time it resolves "localhost".
    arguments.SetSslTargetNameOverride("localhost");
    return grpc::CreateCustomChannel("127.0.0.1:" + std::to_string(port_),
                                     grpc::SslCredentials(options), arguments);
  }
  static grpc::Status Call(const std::shared_ptr<grpc::Channel>& channel,
                           std::vector<std::string>* names = nullptr) {
    PatientContext context;
    return Call(channel, names, &context);
  }
  // Where the connection cannot be made, which a patient call would wait for.
  static bool IsTurnedAway(const std::shared_ptr<grpc::Channel>& channel) {
    grpc::ClientContext context;
    return Call(channel, nullptr, &context).error_code() == grpc::StatusCode::UNAVAILABLE;
  }
  static grpc::Status Call(const std::shared_ptr<grpc::Channel>& channel,
                           std::vector<std::string>* names, grpc::ClientContext* context) {
    v1::ListJobsResponse response;
    const auto status = v1::Query::NewStub(channel)->ListJobs(context, {}, &response);
    if (names == nullptr) return status;
    names->clear();
    for (const auto& job : response.jobs()) names->push_back(job.name());
    return status;
  }

  TestFiles files_;
  const TestCertificate authority_ = TestCertificate::Authority("ca");
  const TestCertificate other_authority_ = TestCertificate::Authority("other ca");
  const TestCertificate server_ = TestCertificate::Loopback(authority_, "server");
  config::v1::Collector config_;
  NamesService service_;
  std::unique_ptr<TlsSource> source_;
  std::shared_ptr<grpc::ServerCredentials> credentials_;
  std::unique_ptr<grpc::Server> grpc_;
  int port_ = 0;
};

TEST_F(TlsTest, EveryMistakeIsNamedWithItsKeyAndFile) {
  EXPECT_EQ(LoadError(), "");
  tls()->set_key("");
  EXPECT_THAT(LoadError(), HasSubstr("listen.tls.key: is missing"));
  tls()->set_key(files_.PathOf("nowhere"));
  EXPECT_THAT(LoadError(), AllOf(HasSubstr("listen.tls.key"), HasSubstr("nowhere")));
  tls()->set_key(files_.Write("garbage", "no key"));
  EXPECT_THAT(LoadError(), HasSubstr("holds no private key in PEM"));
  tls()->set_key(files_.Write("other.key", TestCertificate::Authority("x").key_pem()));
  EXPECT_THAT(LoadError(),
              AllOf(HasSubstr("other.key is not the key of CN=server"), HasSubstr("server.crt")));
  tls()->set_key(files_.Write("open.key", server_.key_pem(), 0644));
  EXPECT_THAT(LoadError(), AllOf(HasSubstr("listen.tls.key"), HasSubstr("chmod o-r")));

  UseServer(server_);
  tls()->set_certificate(files_.Write("garbage", "no certificate"));
  EXPECT_THAT(LoadError(), HasSubstr("listen.tls.certificate"));
  tls()->set_certificate(files_.Write("empty", ""));
  EXPECT_THAT(LoadError(), HasSubstr("empty is empty"));
  tls()->set_certificate(files_.Write("cut", server_.pem() + server_.pem().substr(0, 300)));
  EXPECT_THAT(LoadError(), HasSubstr("damaged behind"));
  UseServer(TestCertificate::Make({.common_name = "old", .not_after = absl::Now()}, &authority_));
  EXPECT_THAT(LoadError(), AllOf(HasSubstr("CN=old has expired at"), HasSubstr("server.crt")));
  UseServer(TestCertificate::Make(
      {.common_name = "new", .not_before = absl::Now() + absl::Hours(1)}, &authority_));
  EXPECT_THAT(LoadError(), HasSubstr("is not valid before"));

  UseServer(server_);
  tls()->set_client_certificates("require");
  EXPECT_THAT(LoadError(), HasSubstr("listen.tls.client_ca: is missing"));
  AskClients("none");
  EXPECT_THAT(LoadError(), HasSubstr("listen.tls.client_certificates"));
  AskClients("require");
  tls()->set_client_ca(files_.Write("no.ca", "x", 0644));
  EXPECT_THAT(LoadError(), HasSubstr("listen.tls.client_ca"));
}

TEST_F(TlsTest, AnEncryptedKeyIsRefusedAndNobodyIsAskedForItsPassphrase) {
  BIO* const out = BIO_new(BIO_s_mem());
  EVP_PKEY* const key = EVP_EC_gen("P-256");
  unsigned char passphrase[] = "secret";
  PEM_write_bio_PrivateKey(out, key, EVP_aes_128_cbc(), passphrase, 6, nullptr, nullptr);
  char* data = nullptr;
  const long size = BIO_get_mem_data(out, &data);
  tls()->set_key(files_.Write("locked.key", std::string(data, static_cast<size_t>(size))));
  BIO_free(out);
  EVP_PKEY_free(key);
  EXPECT_THAT(LoadError(), HasSubstr("is encrypted"));
}

TEST_F(TlsTest, OnlyAClientThatTrustsTheAuthorityConnects) {
  Serve();
  EXPECT_TRUE(Call(Connect(authority_)).ok());
  EXPECT_TRUE(IsTurnedAway(Connect(other_authority_)));
}

TEST_F(TlsTest, ARequiredClientCertificateIsVerifiedAndItsNamesAreKnown) {
  AskClients("require");
  Serve();
  const auto good = TestCertificate::Make(
      {.common_name = "agent", .alternative_names = {"URI:spiffe://x/agent"}}, &authority_);
  std::vector<std::string> names;
  const auto let_in = Call(Connect(authority_, &good), &names);
  EXPECT_TRUE(let_in.ok()) << let_in.error_message();
  EXPECT_THAT(names, Contains("CN:agent"));
  EXPECT_THAT(names, Contains("URI:spiffe://x/agent"));

  const auto of_another = TestCertificate::Make({.common_name = "agent"}, &other_authority_);
  const auto expired = TestCertificate::Make(
      {.common_name = "agent", .not_after = absl::Now() - absl::Minutes(1)}, &authority_);
  const auto own_authority = TestCertificate::Make({.common_name = "agent"});
  EXPECT_TRUE(IsTurnedAway(Connect(authority_, &of_another)));
  EXPECT_TRUE(IsTurnedAway(Connect(authority_, &expired)));
  EXPECT_TRUE(IsTurnedAway(Connect(authority_, &own_authority)));
  EXPECT_TRUE(IsTurnedAway(Connect(authority_)));
}

TEST_F(TlsTest, ARequestedClientCertificateMayBeMissingButNotWrong) {
  AskClients("request");
  Serve();
  const auto good = TestCertificate::Make({.common_name = "agent"}, &authority_);
  const auto of_another = TestCertificate::Make({.common_name = "agent"}, &other_authority_);
  std::vector<std::string> names;
  EXPECT_TRUE(Call(Connect(authority_), &names).ok());
  EXPECT_THAT(names, IsEmpty());
  EXPECT_TRUE(Call(Connect(authority_, &good), &names).ok());
  EXPECT_THAT(names, Contains("CN:agent"));
  EXPECT_TRUE(IsTurnedAway(Connect(authority_, &of_another)));
}

TEST_F(TlsTest, NewConnectionsSeeTheNewCertificateAndOldOnesGoOn) {
  Serve();
  const auto old_channel = Connect(authority_);
  ASSERT_TRUE(Call(old_channel).ok());
  EXPECT_EQ(source_->Poll(), "");

  const auto next = TestCertificate::Loopback(other_authority_, "next");
  files_.Write("server.crt", next.pem(), 0644);
  // Certificate and key are replaced one after the other.
  EXPECT_THAT(source_->Poll(), HasSubstr("is not the key of CN=next"));
  EXPECT_EQ(source_->Poll(), "") << "said once";
  EXPECT_TRUE(source_->last_failed());
  EXPECT_TRUE(Call(Connect(authority_)).ok());

  files_.Write("server.key", next.key_pem());
  EXPECT_THAT(source_->Poll(), HasSubstr("CN=next"));
  EXPECT_FALSE(source_->last_failed());
  EXPECT_TRUE(Call(Connect(other_authority_)).ok());
  EXPECT_TRUE(IsTurnedAway(Connect(authority_)));
  EXPECT_TRUE(Call(old_channel).ok());
}

TEST_F(TlsTest, ClientAuthoritiesAreReplacedToo) {
  AskClients("require");
  Serve();
  const auto one = TestCertificate::Make({.common_name = "one"}, &authority_);
  const auto other = TestCertificate::Make({.common_name = "other"}, &other_authority_);
  ASSERT_TRUE(Call(Connect(authority_, &one)).ok());
  ASSERT_TRUE(IsTurnedAway(Connect(authority_, &other)));
  files_.Write("clients.crt", other_authority_.pem(), 0644);
  source_->Poll();
  EXPECT_TRUE(IsTurnedAway(Connect(authority_, &one)));
  EXPECT_TRUE(Call(Connect(authority_, &other)).ok());
}

TEST_F(TlsTest, AReloadTakesAllFilesOrNone) {
  Serve();
  const auto before = source_->Current();
  auto config = config_;
  config.mutable_listen()->mutable_tls()->set_key(files_.Write("bad.key", "x"));
  EXPECT_EQ(source_->Prepare(config).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(source_->Current(), before);

  const auto next = TestCertificate::Loopback(authority_, "next");
  config.mutable_listen()->mutable_tls()->set_certificate(files_.Write("n.crt", next.pem(), 0644));
  config.mutable_listen()->mutable_tls()->set_key(files_.Write("n.key", next.key_pem()));
  const auto apply = source_->Prepare(config);
  ASSERT_TRUE(apply.ok()) << apply.status();
  EXPECT_EQ(source_->Current(), before) << "not yet";
  (*apply)();
  EXPECT_EQ(source_->Current()->subject, "CN=next");
  EXPECT_EQ(source_->Poll(), "") << "looks at the new paths";
}

class ListenPolicyTest : public testing::Test {
 protected:
  ListenPolicyTest() { Listen("127.0.0.1:1", "[::1]:2"); }
  void Listen(const std::string& grpc, const std::string& http) {
    config_.mutable_listen()->set_grpc(grpc);
    config_.mutable_listen()->set_http(http);
  }
  std::string Problem() { return std::string(CheckListen(config_).message()); }
  config::v1::Collector config_;
};

TEST_F(ListenPolicyTest, LoopbackNeedsNothing) {
  for (const char* address : {"127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "localhost:1",
                              "[::ffff:127.0.0.1]:1", "a.localhost:1", "LOCALHOST:1"}) {
    Listen(address, address);
    EXPECT_EQ(Problem(), "") << address;
  }
}

TEST_F(ListenPolicyTest, AnyOtherAddressNeedsAuthenticationOrToBeSaid) {
  for (const char* address : {"0.0.0.0:1", "[::]:1", "10.0.0.1:1", "host:1", "127.evil.com:1",
                              "localhost.evil.com:1", "[::ffff:10.0.0.1]:1"}) {
    Listen(address, "127.0.0.1:2");
    EXPECT_THAT(Problem(), AllOf(HasSubstr("listen.grpc"), HasSubstr("auth.tokens_file"),
                                 HasSubstr("auth.allow_anonymous: true")))
        << address;
    Listen("127.0.0.1:1", address);
    EXPECT_THAT(Problem(), HasSubstr("listen.http")) << address;
  }
  config_.mutable_auth()->set_allow_anonymous(true);
  EXPECT_EQ(Problem(), "");
}

TEST_F(ListenPolicyTest, TokensNeedTlsThere) {
  Listen("0.0.0.0:1", "0.0.0.0:2");
  config_.mutable_auth()->set_tokens_file("tokens.yaml");
  EXPECT_THAT(Problem(), AllOf(HasSubstr("listen.grpc"), HasSubstr("listen.tls.certificate"),
                               HasSubstr("auth.allow_plaintext")));
  config_.mutable_listen()->mutable_tls()->set_certificate("x");
  EXPECT_THAT(Problem(), HasSubstr("listen.http"));
  config_.mutable_listen()->mutable_tls()->set_http(true);
  EXPECT_EQ(Problem(), "");
  config_.mutable_listen()->clear_tls();
  config_.mutable_auth()->set_allow_plaintext(true);
  EXPECT_EQ(Problem(), "");
}

TEST_F(ListenPolicyTest, AnonymousAndTokensExcludeEachOther) {
  config_.mutable_auth()->set_tokens_file("tokens.yaml");
  config_.mutable_auth()->set_allow_anonymous(true);
  EXPECT_THAT(Problem(), HasSubstr("auth.allow_anonymous"));
}

TEST_F(ListenPolicyTest, TlsIsNotTurnedOnOrOffByAReload) {
  ListenPolicy policy(config_);
  EXPECT_TRUE(policy.Prepare(config_).ok());
  config_.mutable_listen()->mutable_tls()->set_certificate("x");
  EXPECT_EQ(policy.Prepare(config_).status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace tacho::server::security
