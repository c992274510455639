#include "proto/base/pem_files.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <ctime>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace tacho::config {
namespace {

OpenSslPtr<BIO> Owned(BIO* bio) {
  return {bio, [](BIO* one) { BIO_free(one); }};
}

OpenSslPtr<BIO> MemoryBio(const std::string& text) {
  return Owned(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

absl::Status Wrong(const std::string& path, absl::string_view problem) {
  return absl::InvalidArgumentError(absl::StrCat(path, problem));
}

}  // namespace

absl::StatusOr<Certificates> ParseCertificates(const std::string& path, const std::string& pem) {
  const OpenSslPtr<BIO> bio = MemoryBio(pem);
  Certificates all;
  while (X509* const one = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) {
    all.emplace_back(one, X509_free);
  }
  // The end of the text is an error too: no line begins another certificate.
  const bool clean_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (all.empty()) return Wrong(path, " holds no certificate in PEM");
  if (!clean_end) return Wrong(path, " is damaged behind its first certificates");
  return all;
}

absl::StatusOr<OpenSslPtr<EVP_PKEY>> ParsePrivateKey(const std::string& path,
                                                     const std::string& pem) {
  // A program that starts alone has nobody to ask.
  const auto no_passphrase = [](char*, int, int, void* asked) {
    *static_cast<bool*>(asked) = true;
    return -1;
  };
  bool asked = false;
  OpenSslPtr<EVP_PKEY> key(
      PEM_read_bio_PrivateKey(MemoryBio(pem).get(), nullptr, no_passphrase, &asked), EVP_PKEY_free);
  ERR_clear_error();
  if (key != nullptr) return key;
  return Wrong(path, asked ? " is encrypted; expected a key without a passphrase"
                           : " holds no private key in PEM");
}

absl::Status CheckPair(const std::string& certificate_path, const X509& certificate,
                       const std::string& key_path, const EVP_PKEY& key) {
  const int fits = X509_check_private_key(&certificate, &key);
  ERR_clear_error();
  if (fits == 1) return absl::OkStatus();
  return Wrong(key_path, absl::StrCat(" is not the key of ", SubjectOf(certificate),
                                      ", the first certificate of ", certificate_path));
}

absl::Status CheckTimes(const std::string& path, const X509& certificate, absl::Time now) {
  const absl::Time from = ToAbslTime(X509_get0_notBefore(&certificate));
  const absl::Time until = ToAbslTime(X509_get0_notAfter(&certificate));
  const auto say = [&](absl::string_view what, absl::Time when) {
    return Wrong(path, absl::StrCat(": ", SubjectOf(certificate), what,
                                    absl::FormatTime(when, absl::UTCTimeZone())));
  };
  if (now >= until) return say(" has expired at ", until);
  if (now < from) return say(" is not valid before ", from);
  return absl::OkStatus();
}

std::string SubjectOf(const X509& certificate) {
  const OpenSslPtr<BIO> out = Owned(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(out.get(), X509_get_subject_name(&certificate), 0, XN_FLAG_RFC2253);
  char* data = nullptr;
  const long size = BIO_get_mem_data(out.get(), &data);
  return {data, static_cast<size_t>(size)};
}

absl::Time ToAbslTime(const ASN1_TIME* time) {
  std::tm parts{};
  if (time == nullptr || ASN1_TIME_to_tm(time, &parts) != 1) return absl::InfinitePast();
  return absl::FromTM(parts, absl::UTCTimeZone());
}

}  // namespace tacho::config
