// The tokens and certificates of auth.tokens_file, checked and ready to be looked up.
#pragma once

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/security/peer_certificate.h"
#include "server/security/rights.h"
#include "server/security/tokens.h"
#include "tacho/config/v1/access.pb.h"

namespace tacho::server::security {

class RulePatterns;

// Immutable, so thread-safe.
class AccessRules {
 public:
  struct TokenRule {
    RightsPtr rights;
    JobPattern certificate;  // A name of the peer's certificate must match. Null: none is needed.
  };

  // `index` is not owned and must outlive the rules.
  //   INVALID_ARGUMENT  every text begins with the key that is wrong, as in "tokens[2].sha256".
  static absl::StatusOr<AccessRules> Make(const config::v1::Access& access,
                                          const BlindIndex* index);
  // Reads them from a file; docs/security.md describes it.
  //   INVALID_ARGUMENT  as above, or not YAML of this schema, with the file and mostly the line.
  //   others            as config::ReadCheckedFile().
  static absl::StatusOr<AccessRules> Load(const std::string& path, const BlindIndex* index);

  // The rule of a token by BlindIndex::KeyOf() of its SHA-256; nullptr if there is none.
  const TokenRule* FindToken(absl::string_view key) const;
  // The rights of the first rule that matches; nullptr if none does.
  RightsPtr FindCertificate(const PeerCertificate& certificate) const;

  size_t tokens() const { return tokens_.size(); }
  size_t certificates() const { return certificates_.size(); }

 private:
  struct CertificateRule {
    JobPattern names;
    Rights::Options rights;
    bool names_agent = false;  // A group of `names` matches the agent_id.
  };

  static absl::StatusOr<TokenRule> MakeTokenRule(const std::string& key,
                                                 const config::v1::Access::Token& token,
                                                 RulePatterns* patterns);
  static absl::StatusOr<CertificateRule> MakeCertificateRule(
      const std::string& key, const config::v1::Access::Certificate& certificate,
      RulePatterns* patterns);

  absl::flat_hash_map<std::string, TokenRule> tokens_;
  std::vector<CertificateRule> certificates_;
};

// The first of the names that the pattern matches as a whole; nullptr if none. If `group` is not
// null and the pattern has a group named agent_id, it gets the text of that group.
const std::string* FindName(const RE2& pattern, const std::vector<std::string>& names,
                            std::string* group);

}  // namespace tacho::server::security
