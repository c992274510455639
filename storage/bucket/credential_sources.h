// The places that hand out credentials. Each one is asked in the way that its documentation says:
// AWS' SDK reference guide ("Standardized credential providers"), the guides of EC2 (IMDSv2), ECS,
// EKS Pod Identity, the STS API reference, and Compute Engine's page on the metadata server.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/bucket/credentials.h"
#include "storage/bucket/http_pool.h"

namespace tacho::storage {

// What the sources look at. Copies share the pool, which must outlive them.
struct CredentialWorld {
  std::function<const char*(const char* name)> environment;  // As getenv().
  std::string region;
  HttpPool* http = nullptr;

  std::string Variable(const char* name) const;  // Empty: not set.
  bool Has(const char* name) const { return !Variable(name).empty(); }
};

// Errors of all: as FetchCredentials.

// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN.
absl::StatusOr<Credentials> FromEnvironment(const CredentialWorld& world);

// AWS_ROLE_ARN and AWS_WEB_IDENTITY_TOKEN_FILE (EKS' roles for service accounts), exchanged at the
// region's STS, or at AWS_ENDPOINT_URL_STS. AWS_ROLE_SESSION_NAME names the session.
absl::StatusOr<Credentials> FromWebIdentity(const CredentialWorld& world);

// AWS_SHARED_CREDENTIALS_FILE (~/.aws/credentials), then AWS_CONFIG_FILE (~/.aws/config); the
// profile of AWS_PROFILE, else "default". Profiles that take a role, use SSO or run a program are
// refused.
//   NOT_FOUND  AWS_PROFILE is not set, and no file has the keys of "default".
absl::StatusOr<Credentials> FromSharedFiles(const CredentialWorld& world);
// The same of one file.
absl::StatusOr<Credentials> FromFile(const CredentialWorld& world, const std::string& path);

// AWS_CONTAINER_CREDENTIALS_RELATIVE_URI (ECS), or _FULL_URI with
// AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE or _TOKEN (EKS Pod Identity).
absl::StatusOr<Credentials> FromContainer(const CredentialWorld& world);

// The role of this EC2 instance, by IMDSv2; at AWS_EC2_METADATA_SERVICE_ENDPOINT if that is set.
//   NOT_FOUND  this is no EC2 instance, or one without a role, or AWS_EC2_METADATA_DISABLED is
//   true.
absl::StatusOr<Credentials> FromInstance(const CredentialWorld& world);

// The token of this machine's or pod's service account, by Google's metadata server, or the one at
// GCE_METADATA_HOST.
//   NOT_FOUND  no such server answers.
absl::StatusOr<Credentials> FromGoogleMetadata(const CredentialWorld& world);

// The credentials in a JSON object as ECS, EKS and EC2 give it: AccessKeyId, SecretAccessKey,
// Token, Expiration. `source` becomes the one of the result.
//   PERMISSION_DENIED  it is something else.
absl::StatusOr<Credentials> ParseJsonCredentials(absl::string_view body, std::string source);

}  // namespace tacho::storage
