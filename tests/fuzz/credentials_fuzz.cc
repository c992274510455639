// Who somebody says he is: headers with tokens come from whoever reaches a port; certificates, keys
// and the tokens file are what others wrote. The first byte says which.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/strings/string_view.h"
#include "proto/base/pem_files.h"
#include "proto/config/yaml_config.h"
#include "server/security/access_rules.h"
#include "server/security/peer_certificate.h"
#include "server/security/tokens.h"
#include "tacho/config/v1/access.pb.h"

namespace {

namespace security = tacho::server::security;

void Expect(bool holds) {
  if (!holds) std::abort();
}

void CheckHeader(absl::string_view header) {
  const std::string bearer = security::TokenOf(header, false);
  Expect(bearer.size() <= header.size());
  // Who may also come with Basic loses nothing by it.
  const std::string either = security::TokenOf(header, true);
  Expect(bearer.empty() || bearer == either);
  Expect(either.size() <= header.size());
  Expect(security::Sha256(either).size() == 32);
}

void CheckPem(const std::string& pem) {
  const auto certificate = security::DescribePemCertificate(pem);
  if (certificate.ok()) {
    for (const std::string& name : certificate->names) {
      Expect(name.find('\0') == std::string::npos && name.find(':') != std::string::npos);
    }
  }
  if (const auto all = tacho::config::ParseCertificates("fuzz.pem", pem); all.ok()) {
    Expect(!all->empty());
    for (const auto& one : *all) {
      tacho::config::SubjectOf(*one);
      tacho::config::CheckTimes("fuzz.pem", *one, absl::UnixEpoch()).IgnoreError();
    }
  }
  tacho::config::ParsePrivateKey("fuzz.pem", pem).status().IgnoreError();
}

// Whatever comes to hold a token, one that is not in the file opens nothing.
void CheckRules(absl::string_view yaml) {
  static const security::BlindIndex* const index = new security::BlindIndex;
  tacho::config::v1::Access access;
  if (!tacho::config::ParseYaml(yaml, "fuzz", &access).ok()) return;
  const auto rules = security::AccessRules::Make(access, index);
  if (!rules.ok()) return Expect(!rules.status().message().empty());
  Expect(rules->tokens() == static_cast<size_t>(access.tokens_size()));
  Expect(rules->FindToken(index->KeyOf(security::Sha256("no token"))) == nullptr);
  rules->FindCertificate({.names = {"CN:host-7", "DNS:", "URI:spiffe://example/agent"}});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const absl::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  switch (data[0] % 3) {
    case 0:
      CheckHeader(bytes);
      break;
    case 1:
      CheckPem(std::string(bytes));
      break;
    default:
      CheckRules(bytes);
  }
  return 0;
}
