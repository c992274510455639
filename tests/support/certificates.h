// Certificates made for a test, in PEM.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace tacho {

struct CertificateOptions {
  std::string common_name;
  std::vector<std::string> alternative_names;  // "DNS:localhost", "IP:127.0.0.1", "URI:..."
  absl::Time not_before = absl::Now() - absl::Hours(1);
  absl::Time not_after = absl::Now() + absl::Hours(24);
  bool is_authority = false;
};

// A certificate and its key.
class TestCertificate {
 public:
  // Signed by `authority`, or by itself if that is null.
  static TestCertificate Make(const CertificateOptions& options,
                              const TestCertificate* authority = nullptr);
  static TestCertificate Authority(const std::string& name) {
    return Make({.common_name = name, .is_authority = true});
  }
  // For a server on loopback.
  static TestCertificate Loopback(const TestCertificate& authority, const std::string& name) {
    return Make({.common_name = name, .alternative_names = {"DNS:localhost", "IP:127.0.0.1"}},
                &authority);
  }

  const std::string& pem() const { return pem_; }
  const std::string& key_pem() const { return key_pem_; }

 private:
  struct Parts;
  std::shared_ptr<Parts> parts_;
  std::string pem_;
  std::string key_pem_;
};

// Files in a directory of their own, which goes with them.
class TestFiles {
 public:
  TestFiles();
  ~TestFiles();
  TestFiles(const TestFiles&) = delete;
  TestFiles& operator=(const TestFiles&) = delete;

  // The path. `mode` as of chmod(2).
  std::string Write(const std::string& name, const std::string& text, unsigned mode = 0600) const;
  std::string PathOf(const std::string& name) const { return directory_ + "/" + name; }

 private:
  std::string directory_;
};

}  // namespace tacho
