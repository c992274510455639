#include "storage/bucket/credential_chain.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace tacho::storage {
namespace {

absl::Status NoneFound(absl::string_view looked) {
  return absl::PermissionDeniedError(
      absl::StrCat("no credentials for the bucket: ", looked,
                   ". Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name another source"));
}

absl::StatusOr<Credentials> FromFirstOfAws(const CredentialWorld& world) {
  if (world.Has("AWS_ACCESS_KEY_ID")) return FromEnvironment(world);
  if (world.Has("AWS_WEB_IDENTITY_TOKEN_FILE") || world.Has("AWS_ROLE_ARN")) {
    return FromWebIdentity(world);
  }
  auto shared = FromSharedFiles(world);
  if (!absl::IsNotFound(shared.status())) return shared;
  if (world.Has("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") ||
      world.Has("AWS_CONTAINER_CREDENTIALS_FULL_URI")) {
    return FromContainer(world);
  }
  auto instance = FromInstance(world);
  if (!absl::IsNotFound(instance.status())) return instance;
  return NoneFound(absl::StrCat("AWS_ACCESS_KEY_ID is not set; ", shared.status().message(), "; ",
                                instance.status().message()));
}

absl::StatusOr<Credentials> FromFirstOfGoogle(const CredentialWorld& world) {
  if (absl::StartsWith(world.Variable("AWS_ACCESS_KEY_ID"), "GOOG")) return FromEnvironment(world);
  if (world.Has("GOOGLE_APPLICATION_CREDENTIALS")) {
    return absl::PermissionDeniedError(
        "GOOGLE_APPLICATION_CREDENTIALS is set, and keys of service accounts are not possible "
        "here. "
        "Unset it to use the metadata server, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY "
        "to "
        "an HMAC key of the account");
  }
  auto metadata = FromGoogleMetadata(world);
  if (!absl::IsNotFound(metadata.status())) return metadata;
  return NoneFound(
      absl::StrCat("AWS_ACCESS_KEY_ID is no HMAC key of Google's; ", metadata.status().message()));
}

// A source that was named has to have some.
FetchCredentials Named(absl::StatusOr<Credentials> (*source)(const CredentialWorld&),
                       CredentialWorld world) {
  return [source, world = std::move(world)]() -> absl::StatusOr<Credentials> {
    auto found = source(world);
    if (absl::IsNotFound(found.status())) return NoneFound(found.status().message());
    return found;
  };
}

}  // namespace

absl::StatusOr<FetchCredentials> ChooseCredentials(const std::string& choice, BucketDialect dialect,
                                                   CredentialWorld world) {
  const bool google = dialect == BucketDialect::kGcs;
  if (choice == "auto") return Named(google ? FromFirstOfGoogle : FromFirstOfAws, std::move(world));
  if (choice == "environment") return Named(FromEnvironment, std::move(world));
  if (choice == "instance") {
    return Named(google ? FromGoogleMetadata : FromInstance, std::move(world));
  }
  absl::string_view path = choice;
  if (absl::ConsumePrefix(&path, "file:") && !path.empty()) {
    return FetchCredentials(
        [world = std::move(world), path = std::string(path)] { return FromFile(world, path); });
  }
  if (choice == "web_identity" && !google) return Named(FromWebIdentity, std::move(world));
  if (choice == "container" && !google) return Named(FromContainer, std::move(world));
  return absl::InvalidArgumentError(
      absl::StrCat("the bucket's credentials '", choice, "': expected auto, environment, file:PATH",
                   google ? " or instance" : ", web_identity, container or instance"));
}

}  // namespace tacho::storage
