#include "tests/support/certificates.h"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_join.h"

namespace tacho {
namespace {

void Require(bool held) {
  if (!held) std::abort();  // OpenSSL's, in a test: nothing can be done.
}

std::string TextOf(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  std::string text(data, static_cast<size_t>(size));
  BIO_free(bio);
  return text;
}

void AddExtension(X509* certificate, int nid, const std::string& value) {
  X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, nullptr, nid, value.c_str());
  Require(extension != nullptr);
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

int NextSerial() {
  static std::atomic<int> serial{0};
  return ++serial;
}

}  // namespace

struct TestCertificate::Parts {
  X509* certificate = X509_new();
  EVP_PKEY* key = EVP_EC_gen("P-256");
  ~Parts() {
    X509_free(certificate);
    EVP_PKEY_free(key);
  }
};

TestCertificate TestCertificate::Make(const CertificateOptions& options,
                                      const TestCertificate* authority) {
  TestCertificate made;
  made.parts_ = std::make_shared<Parts>();
  X509* const certificate = made.parts_->certificate;
  Require(made.parts_->key != nullptr);
  X509_set_version(certificate, X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), NextSerial());
  ASN1_TIME_set(X509_getm_notBefore(certificate), absl::ToTimeT(options.not_before));
  ASN1_TIME_set(X509_getm_notAfter(certificate), absl::ToTimeT(options.not_after));
  X509_set_pubkey(certificate, made.parts_->key);
  X509_NAME_add_entry_by_NID(X509_get_subject_name(certificate), NID_commonName, MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(options.common_name.data()),
                             static_cast<int>(options.common_name.size()), -1, 0);
  const Parts& signer = authority == nullptr ? *made.parts_ : *authority->parts_;
  X509_set_issuer_name(certificate, X509_get_subject_name(signer.certificate));
  AddExtension(certificate, NID_basic_constraints,
               options.is_authority ? "critical,CA:TRUE" : "CA:FALSE");
  if (!options.alternative_names.empty()) {
    AddExtension(certificate, NID_subject_alt_name, absl::StrJoin(options.alternative_names, ","));
  }
  Require(X509_sign(certificate, signer.key, EVP_sha256()) != 0);

  BIO* const pem = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(pem, certificate);
  made.pem_ = TextOf(pem);
  BIO* const key = BIO_new(BIO_s_mem());
  PEM_write_bio_PrivateKey(key, made.parts_->key, nullptr, nullptr, 0, nullptr, nullptr);
  made.key_pem_ = TextOf(key);
  return made;
}

TestFiles::TestFiles() {
  directory_ = std::filesystem::temp_directory_path() / "tacho-files-XXXXXX";
  Require(mkdtemp(directory_.data()) != nullptr);
}

TestFiles::~TestFiles() {
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

std::string TestFiles::Write(const std::string& name, const std::string& text,
                             unsigned mode) const {
  const std::string path = PathOf(name);
  std::ofstream(path, std::ios::trunc) << text;
  Require(chmod(path.c_str(), mode) == 0);
  return path;
}

}  // namespace tacho
