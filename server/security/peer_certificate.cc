#include "server/security/peer_certificate.h"

#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "absl/strings/str_cat.h"
#include "proto/base/pem_files.h"
#include "proto/base/status_macros.h"

namespace tacho::server::security {
namespace {

void AddName(absl::string_view kind, const ASN1_STRING* value, std::vector<std::string>* names) {
  unsigned char* utf8 = nullptr;
  const int size = ASN1_STRING_to_UTF8(&utf8, value);
  if (size < 0) return;
  const absl::string_view text(reinterpret_cast<const char*>(utf8), static_cast<size_t>(size));
  if (!text.empty() && text.find('\0') == absl::string_view::npos) {
    names->push_back(absl::StrCat(kind, ":", text));
  }
  OPENSSL_free(utf8);
}

void AddCommonNames(const X509& certificate, std::vector<std::string>* names) {
  const X509_NAME* subject = X509_get_subject_name(&certificate);
  for (int at = -1; (at = X509_NAME_get_index_by_NID(subject, NID_commonName, at)) >= 0;) {
    AddName("CN", X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)), names);
  }
}

void AddAlternativeNames(const X509& certificate, std::vector<std::string>* names) {
  auto* const all = static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(&certificate, NID_subject_alt_name, nullptr, nullptr));
  if (all == nullptr) return;
  for (int i = 0; i < sk_GENERAL_NAME_num(all); ++i) {
    int type = 0;
    const void* const value = GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(all, i), &type);
    if (type == GEN_DNS) AddName("DNS", static_cast<const ASN1_STRING*>(value), names);
    if (type == GEN_URI) AddName("URI", static_cast<const ASN1_STRING*>(value), names);
  }
  GENERAL_NAMES_free(all);
}

}  // namespace

PeerCertificate DescribeCertificate(const X509& certificate) {
  PeerCertificate described;
  described.not_after = config::ToAbslTime(X509_get0_notAfter(&certificate));
  AddCommonNames(certificate, &described.names);
  AddAlternativeNames(certificate, &described.names);
  return described;
}

absl::StatusOr<PeerCertificate> DescribePemCertificate(const std::string& pem) {
  TACHO_ASSIGN_OR_RETURN(const auto certificates,
                         config::ParseCertificates("the peer's certificate", pem));
  return DescribeCertificate(*certificates.front());
}

}  // namespace tacho::server::security
