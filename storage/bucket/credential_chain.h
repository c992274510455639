// Which source of credentials is asked.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "storage/bucket/bucket_address.h"
#include "storage/bucket/credential_sources.h"
#include "storage/bucket/credentials.h"

namespace tacho::storage {

// `choice`: environment, file:PATH, web_identity, container, instance: that one alone. auto: the
// first that is configured, in the order of AWS' own programs:
//
//   environment    AWS_ACCESS_KEY_ID is set. For Google: only if it is one of Google's HMAC keys,
//                  which begin with GOOG
//   web_identity   AWS_ROLE_ARN and AWS_WEB_IDENTITY_TOKEN_FILE are set
//   shared files   AWS_PROFILE is set, or ~/.aws/credentials or ~/.aws/config has keys of "default"
//   container      AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or _FULL_URI is set
//   instance       EC2's metadata; for Google its metadata server
//
// Google has environment and instance alone. A source that is configured and fails ends the search:
// the next one could be somebody else's, like the role of the whole machine.
//   INVALID_ARGUMENT  there is no such choice.
absl::StatusOr<FetchCredentials> ChooseCredentials(const std::string& choice, BucketDialect dialect,
                                                   CredentialWorld world);

}  // namespace tacho::storage
